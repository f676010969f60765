/* A handler on a stack of its own jumps out of a wait. What handlers do afterwards is recorded, whatever
   they interrupt. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

static sigjmp_buf place;
static volatile int has_jumped;
static int handled, busy[64];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void on_alarm(int number) {
    (void)number;
    if (!has_jumped) {
        has_jumped = 1;
        siglongjmp(place, 1);
    }
    handled++;
}

static void start(int microseconds, int every) {
    struct itimerval value = {{0, every}, {0, microseconds}};
    setitimer(ITIMER_REAL, &value, 0);
}

int main(void) {
    char stack[65536];
    stack_t handlers = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action;
    sigaltstack(&handlers, 0);
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGALRM, &action, 0);
    if (!sigsetjmp(place, 1)) {
        start(50000, 0);
        pthread_mutex_lock(&mutex);
        pthread_cond_wait(&condition, &mutex);
    }
    start(200, 200);
    while (*(volatile int *)&handled < 100)
        for (int index = 0; index < 64; index++)
            busy[index] += index;
    start(0, 0);
    printf("%d\n", handled);
    return 0;
}
