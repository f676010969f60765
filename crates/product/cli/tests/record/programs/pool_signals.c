/* Signals for the whole process come while threads of an OpenMP pool have nothing to do. What the handler
   hands over is recorded, whoever is interrupted. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static sem_t given;
static int box, sum, raised;

static void on_signal(int signal) {
    if (signal == SIGUSR1)
        sem_post(&given);
    else
        __atomic_fetch_add(&raised, 1, __ATOMIC_RELAXED);
}

static void *give(void *nothing) {
    for (int i = 1; i <= 20; i++) {
        box = i;
        kill(getpid(), SIGUSR1);
        while (__atomic_load_n(&sum, __ATOMIC_ACQUIRE) < i * (i + 1) / 2)
            usleep(100);
    }
    return nothing;
}

int main(void) {
    pthread_t thread;
    sigset_t set;
    sem_init(&given, 0, 0);
    signal(SIGUSR1, on_signal);
    signal(SIGUSR2, on_signal);
#pragma omp parallel num_threads(3)
    { raise(SIGUSR2); }
    /* Main does not take it; who gives does, or a thread of the pool. */
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_create(&thread, NULL, give, NULL);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    for (int i = 1; i <= 20; i++) {
        while (sem_wait(&given) != 0)
            ;
        __atomic_fetch_add(&sum, box, __ATOMIC_RELEASE);
    }
    pthread_join(thread, NULL);
#pragma omp parallel num_threads(3)
    { raise(SIGUSR2); }
    printf("%d %d\n", sum, raised);
    return 0;
}
