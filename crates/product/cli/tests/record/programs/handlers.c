// Handlers of signals that come while a thread waits or while it is recorded, and what they do.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static sigjmp_buf back;
static sem_t posted;
static pthread_t first;
static atomic_int flag, cells[256];
static atomic_int stop, armed;
static volatile pid_t child = -1;
int data, handled, ends[2];

static void set(int signal, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(signal, &action, 0);
}

static void every(long microseconds) {
    struct itimerval time = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &time, 0);
}

static void once(long microseconds) {
    struct itimerval time = {{0, 0}, {0, microseconds}};
    setitimer(ITIMER_REAL, &time, 0);
}

static void quiet(void) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, 0);
}

static void post(int signal) {
    (void)signal;
    handled++;
    sem_post(&posted);
}

static void jump(int signal) {
    if (signal == SIGSEGV) siglongjmp(back, 1);
    if (armed && pthread_equal(pthread_self(), first)) {
        armed = 0;
        siglongjmp(back, 1);
    }
}

static void split(int signal) {
    (void)signal;
    child = fork();
}

static void *wait_and_add(void *answer) {
    quiet();
    sem_wait(&posted);
    data++;
    if (answer) write(ends[1], "", 1);
    return 0;
}

// A handler posts while its thread waits in `pause`, and in `read`, which goes on afterwards.
static void posts(void) {
    char byte;
    pthread_t thread;
    pipe(ends);
    sem_init(&posted, 0, 0);
    set(SIGALRM, post, SA_RESTART);
    pthread_create(&thread, 0, wait_and_add, 0);
    data = 1;
    once(20000);
    pause();
    pthread_join(thread, 0);
    pthread_create(&thread, 0, wait_and_add, ends);
    data = 1;
    once(20000);
    read(ends[0], &byte, 1);
    data++;
    pthread_join(thread, 0);
    printf("%d %d\n", data, handled);
}

static void *stir(void *unused) {
    quiet();
    while (!stop) {
        data++;
        usleep(1);
    }
    return unused;
}

// A handler jumps away from wherever the thread is.
static void jumps(void) {
    pthread_t threads[3];
    volatile int count = 0;
    first = pthread_self();
    set(SIGALRM, jump, 0);
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, stir, 0);
    every(200);
    sigsetjmp(back, 1);
    if (++count < 1000) {
        armed = 1;
        for (;;) {
            data++;
            sched_yield();
        }
    }
    armed = 0;
    every(0);
    stop = 1;
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    printf("%d\n", count);
}

// An atomic access to memory that is not there; the others share its lock in the runtime.
static void faults(void) {
    atomic_int *volatile nowhere = 0;
    set(SIGSEGV, jump, 0);
    if (!sigsetjmp(back, 1)) atomic_load(nowhere);
    for (int i = 0; i < 256; i++) atomic_store(&cells[i], 1);
    puts("recovered");
}

// A handler makes a child process while its thread waits.
static void splits(void) {
    pthread_t thread;
    set(SIGALRM, split, 0);
    pthread_create(&thread, 0, stir, 0);
    once(20000);
    pause();
    for (int i = 0; i < 1000; i++) data += i;
    if (child == 0) _exit(7);
    int status = 0;
    waitpid(child, &status, 0);
    stop = 1;
    pthread_join(thread, 0);
    printf("%d\n", WEXITSTATUS(status));
}

static void *raise_flag(void *unused) {
    atomic_store(&flag, 1);
    return unused;
}

// A thread is made when no more files can be opened.
static void files(void) {
    struct rlimit few = {32, 32};
    pthread_t thread;
    setrlimit(RLIMIT_NOFILE, &few);
    while (open("/dev/null", O_RDONLY) >= 0) {
    }
    pthread_create(&thread, 0, raise_flag, 0);
    pthread_join(thread, 0);
    printf("%d\n", atomic_load(&flag));
}

static void tick(union sigval unused) {
    (void)unused;
    data++;
    sem_post(&posted);
}

// The C library makes a thread of its own.
static void timer(void) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = tick};
    struct itimerspec soon = {.it_value = {0, 1000000}};
    timer_t timer;
    sem_init(&posted, 0, 0);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &soon, 0);
    sem_wait(&posted);
    puts("ticked");
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    if (!strcmp(what, "posts")) posts();
    if (!strcmp(what, "jumps")) jumps();
    if (!strcmp(what, "faults")) faults();
    if (!strcmp(what, "splits")) splits();
    if (!strcmp(what, "files")) files();
    if (!strcmp(what, "timer")) timer();
    return 0;
}
