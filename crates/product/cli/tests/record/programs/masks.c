/* The signals that a thread blocks are what the program says, however often handlers interrupt it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile int alarms, others, wrong, is_kept_out;
static int shared[16];

static void on_alarm(int number) {
    (void)number;
    alarms++;
    wrong += is_kept_out;
}

static void on_other(int number) {
    (void)number;
    others++;
}

static void handle(int number, void (*handler)(int), int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART | flags;
    sigaction(number, &action, 0);
}

static void start_alarms(void) {
    struct itimerval value = {{0, 100}, {0, 100}};
    setitimer(ITIMER_REAL, &value, 0);
}

static void start_others(void) {
    struct itimerspec value = {{0, 130000}, {0, 130000}};
    struct sigevent event;
    timer_t timer;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGUSR1;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &value, 0);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static int is_any(const sigset_t *set) {
    for (int number = 1; number < 32; number++)
        if (sigismember(set, number) == 1)
            return 1;
    return 0;
}

/* What was blocked, put back. */
static void puts_back(void) {
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    for (int round = 0; round < 60000; round++) {
        pthread_sigmask(SIG_BLOCK, &set, &before);
        is_kept_out = 1;
        wrong += is_any(&before);
        is_kept_out = 0;
        if (round % 2)
            sigprocmask(SIG_SETMASK, &before, 0);
        else
            sigprocmask(SIG_UNBLOCK, &set, 0);
    }
}

/* What is blocked, saved in all ways that there are. */
static void saves(void) {
    for (int round = 0; round < 60000; round++) {
        sigjmp_buf place;
        ucontext_t context;
        shared[round % 16]++;
        if (!sigsetjmp(place, 1))
            wrong += is_any((sigset_t *)&place[0].__saved_mask);
        shared[round % 16]++;
        getcontext(&context);
        wrong += is_any(&context.uc_sigmask);
        shared[round % 16]++;
        wrong += sigblock(0) != 0;
    }
}

/* Handlers that interrupt each other. */
static void nests(void) {
    start_others();
    double end = now() + 5;
    while ((alarms < 600 || others < 600) && now() < end)
        for (int place = 0; place < 16; place++)
            shared[place]++;
}

int main(int count, char **words) {
    handle(SIGALRM, on_alarm, 0);
    handle(SIGUSR1, on_other, SA_NODEFER);
    start_alarms();
    if (!strcmp(words[1], "puts_back"))
        puts_back();
    else if (!strcmp(words[1], "saves"))
        saves();
    else
        nests();
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, 0, &blocked);
    int before = alarms;
    double end = now() + 3;
    while (alarms == before && now() < end)
        shared[0]++;
    printf("%d wrong, %d blocked, later %d\n", wrong, is_any(&blocked), alarms != before);
    return 0;
}
