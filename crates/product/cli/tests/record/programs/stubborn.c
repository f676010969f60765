/* Does not end when it is asked to, nor does its child. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile long x;

static void *counts(void *p) {
    for (;;) x++;
    return p;
}

int main(void) {
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    if (fork() == 0)
        for (;;) pause();
    pthread_t thread;
    pthread_create(&thread, 0, counts, 0);
    puts("started");
    fflush(stdout);
    for (;;) usleep(1000);
}
