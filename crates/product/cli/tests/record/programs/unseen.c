#define _GNU_SOURCE
// A thread waits in a call that nobody stands before, for what `main` does after it has counted.
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ends[2];
static sem_t begun;
volatile int counter;

static void *wait_unseen(void *unused) {
    char byte = 0;
    sem_post(&begun);
    counter++;
    syscall(SYS_read, ends[0], &byte, 1);
    counter++;
    return byte == 'x' ? 0 : unused;
}

int main(void) {
    pthread_t thread;
    void *result;
    if (pipe(ends) || sem_init(&begun, 0, 0)) return 1;
    pthread_create(&thread, 0, wait_unseen, ends);
    sem_wait(&begun);
    for (int i = 0; i < 5000; i++) counter++;
    usleep(1000);
    write(ends[1], "x", 1);
    pthread_join(thread, &result);
    printf("%s\n", result ? "failed" : "ended");
    return 0;
}
