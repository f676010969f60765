// A thread waits in a call that nobody stands before, for what `main` does after it has counted.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int ends[2];
volatile int counter;

static void *wait_unseen(void *unused) {
    FILE *file = fdopen(ends[0], "r");
    counter++;
    int byte = getc(file);
    counter++;
    fclose(file);
    return byte == 'x' ? 0 : unused;
}

int main(void) {
    pthread_t thread;
    void *result;
    if (pipe(ends)) return 1;
    pthread_create(&thread, 0, wait_unseen, &counter);
    for (int i = 0; i < 5000; i++) counter++;
    usleep(1000);
    write(ends[1], "x", 1);
    pthread_join(thread, &result);
    printf("%s %d\n", result ? "failed" : "ended", counter);
    return 0;
}
