// Handlers of signals that jump away, and one that wakes a thread.
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static sigjmp_buf back;
static sem_t woken;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
volatile int x, handled;
int *volatile nowhere = (int *)16;

static void jump(int signal) {
    handled++;
    siglongjmp(back, signal);
}

static void wake(int signal) {
    (void)signal;
    sem_post(&woken);
}

static void *other(void *unused) {
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&m);
        x++;
        pthread_mutex_unlock(&m);
        if (i == 25) usleep(30000);
    }
    return unused;
}

int main(void) {
    struct sigaction action = {.sa_handler = jump};
    struct itimerval soon = {.it_value = {0, 10000}};
    int ends[2], caught = 0;
    pthread_t thread;
    char byte;
    sigaction(SIGSEGV, &action, 0);
    sigaction(SIGALRM, &action, 0);
    signal(SIGUSR1, wake);
    sem_init(&woken, 0, 0);
    if (pipe(ends)) return 1;
    pthread_create(&thread, 0, other, 0);

    if (!sigsetjmp(back, 1)) x = *nowhere;
    else caught++;
    if (!sigsetjmp(back, 1)) {
        setitimer(ITIMER_REAL, &soon, 0);
        read(ends[0], &byte, 1);
    } else {
        caught++;
    }
    raise(SIGUSR1);
    sem_wait(&woken);

    // Memory that goes away right after it was written to.
    volatile int *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page[0] = 1;
    syscall(SYS_munmap, page, 4096);
    page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page[1] = 2;
    mmap((void *)page, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    x = handled;

    pthread_join(thread, 0);
    x = 4711;
    printf("%d %d\n", caught, handled);
    return 0;
}
