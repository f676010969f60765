/* Handlers of signals that are installed and sent after what they read was written, and one that
   repairs what the program fails by. The argument says how the signal comes. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int before_install, before_send, handled;
static char *page;

static void handler(int signal) { handled = before_install + before_send; }

static void with_information(int signal, siginfo_t *information, void *context) {
    handled = before_install + before_send + (information->si_signo == signal ? 0 : 100);
}

static void repair(int signal) { mprotect(page, 4096, PROT_READ | PROT_WRITE); }

static void *sleeps(void *p) {
    /* Only the thread that the signal interrupts looks whether it came. */
    for (int i = 0; i < (p ? 400 : 10) && !(p && handled); i++) usleep(1000);
    return p;
}

/* Sends `signal` after two milliseconds, and again every so often. */
static void arm(int signal) {
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = signal};
    struct itimerspec soon = {{0, 2000000}, {0, 2000000}};
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &soon, 0);
}

static void send(const char *way, pthread_t thread) {
    if (!strcmp(way, "thread")) pthread_kill(thread, SIGUSR1);
    else if (!strcmp(way, "process")) kill(getpid(), SIGUSR1);
    else if (!strcmp(way, "queue")) sigqueue(getpid(), SIGUSR1, (union sigval){0});
    else if (!strcmp(way, "raise")) raise(SIGUSR1);
    else if (!strcmp(way, "alarm")) {
        struct itimerval soon = {{0, 0}, {0, 2000}};
        setitimer(ITIMER_REAL, &soon, 0);
    } else if (!strcmp(way, "timer")) {
        arm(SIGUSR1);
    } else {
        /* The signal, which is ignored by default, has come all along: what is left is the handler. */
        struct sigaction action = {.sa_sigaction = with_information, .sa_flags = SA_SIGINFO};
        sigaction(SIGURG, &action, 0);
    }
}

int main(int count, char **arguments) {
    const char *way = arguments[1];
    if (!strcmp(way, "repair")) {
        signal(SIGSEGV, repair);
        page = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANON, -1, 0);
        page[0] = 1;
        printf("%d\n", page[0]);
        return 0;
    }
    pthread_t thread;
    sigset_t set;
    pthread_create(&thread, 0, sleeps, strcmp(way, "raise") ? &thread : 0);
    /* The other thread takes the signal. */
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGALRM);
    sigaddset(&set, SIGURG);
    if (strcmp(way, "raise")) pthread_sigmask(SIG_BLOCK, &set, 0);
    if (!strcmp(way, "installed")) arm(SIGURG);
    before_install = 1;
    struct sigaction action = {.sa_sigaction = with_information, .sa_flags = SA_SIGINFO}, old;
    sigaction(SIGUSR1, &action, 0);
    sigaction(SIGUSR1, 0, &old);
    if (old.sa_sigaction != with_information || !(old.sa_flags & SA_SIGINFO)) puts("changed");
    if (signal(SIGALRM, handler) != SIG_DFL || signal(SIGALRM, handler) != handler) puts("changed");
    before_send = 2;
    send(way, thread);
    pthread_join(thread, 0);
    sigaction(SIGSEGV, 0, &old);
    if (old.sa_handler != SIG_DFL) puts("changed");
    printf("%d\n", handled);
    return 0;
}
