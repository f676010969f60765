// A handler posts for each signal, whoever gets it: also a thread that begins or ends a parallel region.

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sem_t posted;
static int is_over;

static void on_signal(int number) {
    int error = errno;
    (void)number;
    sem_post(&posted);
    errno = error;
}

static void *send(void *argument) {
    for (long left = (long)argument; left > 0; left--) {
        kill(getpid(), SIGRTMIN + 1);
        while (sem_wait(&posted) != 0) {}
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void *run_regions(void *argument) {
    long sum = 0;
    do {
#pragma omp parallel for num_threads(3) reduction(+ : sum)
        for (int i = 0; i < 8; i++) sum += i;
#pragma omp parallel num_threads(2)
        {
#pragma omp single
            {
#pragma omp task shared(sum)
                sum++;
            }
        }
    } while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE));
    printf("%d\n", sum > 0);
    return argument;
}

int main(int count, char **arguments) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGRTMIN + 1, &action, NULL);
    sem_init(&posted, 0, 0);
    pthread_t runner, sender;
    pthread_create(&runner, NULL, run_regions, NULL);
    // The others get the signals.
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_create(&sender, NULL, send, (void *)(count > 1 ? atol(arguments[1]) : 200));
    pthread_join(sender, NULL);
    pthread_join(runner, NULL);
}
