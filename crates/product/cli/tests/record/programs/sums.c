// Many events: two threads, each the argument's number of rounds of a read and a write.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

volatile int cells[4096];
static long rounds;

static void *add(void *argument) {
    long own = (long)argument;
    for (long i = 0; i < rounds; i++) cells[(i * 7 + own) & 4095] += own;
    return 0;
}

int main(int count, char **arguments) {
    pthread_t threads[2];
    rounds = count > 1 ? atol(arguments[1]) : 1000;
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, add, (void *)(i + 1));
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    printf("done\n");
    return 0;
}
