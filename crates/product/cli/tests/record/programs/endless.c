// Never ends.
#include <pthread.h>
#include <stdio.h>

volatile long x;

static void *count(void *unused) {
    for (;;) x++;
    return unused;
}

int main(void) {
    pthread_t thread;
    printf("running\n");
    fflush(stdout);
    pthread_create(&thread, 0, count, 0);
    count(0);
}
