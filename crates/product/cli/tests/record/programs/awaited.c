/* Signals that a thread waits for carry what was written before they were sent. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static sigset_t set;
static int box[2], sum;

static void *take(void *nothing) {
    siginfo_t information;
    struct timespec limit = {10, 0};
    if (sigwaitinfo(&set, &information) == SIGUSR1)
        sum += box[0];
    if (sigtimedwait(&set, &information, &limit) == SIGUSR2)
        sum += box[1];
    return nothing;
}

static void *give(void *nothing) {
    box[0] = 3;
    kill(getpid(), SIGUSR1);
    usleep(20000);
    box[1] = 4;
    kill(getpid(), SIGUSR2);
    return nothing;
}

int main(void) {
    pthread_t threads[2];
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_create(&threads[0], NULL, take, NULL);
    pthread_create(&threads[1], NULL, give, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    printf("%d\n", sum);
    return 0;
}
