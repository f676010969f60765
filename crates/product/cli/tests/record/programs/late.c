/* A letter through a pipe hands over what was written before it, not what is written after. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int ends[2], before, after;

static void *giver(void *unused) {
    (void)unused;
    before = 1;
    write(ends[1], "a", 1);
    after = 1;
    return 0;
}

int main(void) {
    pthread_t thread;
    char letter;
    pipe(ends);
    pthread_create(&thread, 0, giver, 0);
    read(ends[0], &letter, 1);
    int sum = before;
    sum += after;
    pthread_join(thread, 0);
    return sum > 2;
}
