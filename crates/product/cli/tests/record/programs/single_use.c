/* Handlers that are for one signal only: whatever they interrupt, they run once, and the next signal is
   the system's. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t came, mask_in_handler, flags_in_handler, is_default_in_handler;
static int busy[64];

static void on_alarm(int number) {
    (void)number;
    came = 1;
}

static int own_flags(int number, int *is_default) {
    struct sigaction action;
    sigaction(number, 0, &action);
    *is_default = action.sa_handler == SIG_DFL;
    return (action.sa_flags & SA_RESETHAND ? 1 : 0) | (action.sa_flags & SA_NODEFER ? 2 : 0) |
           (action.sa_flags & SA_SIGINFO ? 4 : 0);
}

static void look(int number) {
    sigset_t blocked;
    int is_default;
    sigprocmask(SIG_BLOCK, 0, &blocked);
    mask_in_handler = sigismember(&blocked, number);
    flags_in_handler = own_flags(number, &is_default);
    is_default_in_handler = is_default;
    came++;
}

static void look_with_information(int number, siginfo_t *information, void *context) {
    (void)context;
    look(information->si_signo == number ? number : 0);
}

static void say(const char *name, int number) {
    int is_default, flags;
    came = 0;
    flags = own_flags(number, &is_default);
    printf("%s: flags %d default %d", name, flags, is_default);
    raise(number);
    printf(", in it: runs %d blocked %d flags %d default %d\n", came, mask_in_handler, flags_in_handler,
           is_default_in_handler);
}

static void *do_nothing(void *nothing) { return nothing; }

static void timers(void) {
    int hits = 0;
    for (int round = 0; round < 100; round++) {
        struct sigaction action;
        struct itimerval once = {{0, 0}, {0, 100 + round}};
        memset(&action, 0, sizeof action);
        action.sa_handler = on_alarm;
        action.sa_flags = SA_RESETHAND;
        came = 0;
        sigaction(SIGALRM, &action, 0);
        setitimer(ITIMER_REAL, &once, 0);
        while (!came)
            for (int place = 0; place < 64; place++)
                busy[place] += place;
        hits++;
    }
    printf("timers: %d\n", hits);
}

int main(void) {
    pthread_t thread;
    struct sigaction action;
    pthread_create(&thread, 0, do_nothing, 0);
    pthread_join(thread, 0);
    timers();

    memset(&action, 0, sizeof action);
    action.sa_handler = look;
    action.sa_flags = SA_RESETHAND;
    sigaction(SIGUSR1, &action, 0);
    say("once", SIGUSR1);
    memset(&action, 0, sizeof action);
    action.sa_sigaction = look_with_information;
    action.sa_flags = SA_RESETHAND | SA_NODEFER | SA_SIGINFO;
    sigaction(SIGUSR1, &action, 0);
    say("nodefer", SIGUSR1);
    printf("before: %d\n", __sysv_signal(SIGUSR1, look) == SIG_DFL);
    say("sysv", SIGUSR1);
    signal(SIGUSR1, look);
    say("bsd", SIGUSR1);
    printf("before: %d\n", sigset(SIGUSR1, SIG_HOLD) == look);
    printf("before: %d\n", sigset(SIGUSR1, SIG_DFL) == SIG_HOLD);
    fflush(stdout);

    pid_t child = fork();
    if (child == 0) {
        __sysv_signal(SIGUSR2, look);
        raise(SIGUSR2);
        raise(SIGUSR2);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    printf("twice: %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    return 0;
}
