//! What stands around the threads of a generated program: helpers, starts and ends.
//!
//! In the code of [`STARTS`], `$` is the thread's number, and it runs `run_$`. [`ENDS`] print what the
//! cells hold by calling `report`.

use super::Needs::{self, C, Cpp, Glib};

/// How a thread is started, and how main waits for its end.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) needs: Needs,
    pub(super) declare: &'static str,
    pub(super) start: &'static str,
    pub(super) join: &'static str,
}

/// How main ends.
#[derive(Debug)]
pub(super) struct End {
    pub(super) declare: &'static str,
    pub(super) setup: &'static str,
    pub(super) last: &'static str,
}

/// Every way to start a thread; the first is the usual one.
#[rustfmt::skip]
pub(super) const STARTS: &[Start] = &[
    Start {
        needs: Needs::Nothing,
        declare: "static pthread_t thread_$; static void *start_$(void *p) { run_$(); return p; }",
        start: "pthread_create(&thread_$, 0, start_$, 0);",
        join: "pthread_join(thread_$, 0);",
    },
    Start {
        needs: Needs::Nothing,
        declare: "static pthread_t thread_$; static sem_t ended_$; static void *start_$(void *p) { run_$(); sem_post(&ended_$); return p; }",
        start: "sem_init(&ended_$, 0, 0); pthread_create(&thread_$, 0, start_$, 0); pthread_detach(thread_$);",
        join: "RETRY(sem_wait(&ended_$));",
    },
    Start {
        needs: C,
        declare: "static thrd_t thread_$; static int start_$(void *p) { (void)p; run_$(); return 0; }",
        start: "thrd_create(&thread_$, start_$, 0);",
        join: "thrd_join(thread_$, 0);",
    },
    Start {
        needs: Cpp,
        declare: "",
        start: "std::thread thread_$(run_$);",
        join: "thread_$.join();",
    },
    Start {
        needs: Cpp,
        declare: "",
        start: "auto thread_$ = std::make_unique<std::jthread>(run_$);",
        join: "thread_$.reset();",
    },
    Start {
        needs: Glib,
        declare: "static GThread *thread_$; static gpointer start_$(gpointer p) { run_$(); return p; }",
        start: "thread_$ = g_thread_new(\"thread\", start_$, 0);",
        join: "g_thread_join(thread_$);",
    },
];

/// Every way to end; the first is the usual one.
#[rustfmt::skip]
pub(super) const ENDS: &[End] = &[
    End { declare: "", setup: "", last: "report(); return 0;" },
    End { declare: "", setup: "atexit(report);", last: "return 0;" },
    End { declare: "", setup: "atexit(report);", last: "exit(0);" },
    End { declare: "", setup: "", last: "report(); _exit(0);" },
    End {
        declare: "static sem_t never; static void *idle(void *p) { for (;;) RETRY(sem_wait(&never)); return p; }",
        setup: "sem_init(&never, 0, 0); { pthread_t t; pthread_create(&t, 0, idle, 0); }",
        last: "report(); return 0;",
    },
    End {
        declare: "static pthread_mutex_t late = PTHREAD_MUTEX_INITIALIZER; static long ticks; static void *tick(void *p) { for (int i = 0; i < 20; i++) { pthread_mutex_lock(&late); ticks++; pthread_mutex_unlock(&late); sched_yield(); } return p; }",
        setup: "{ pthread_t t; pthread_create(&t, 0, tick, 0); pthread_detach(t); }",
        last: "report(); pthread_mutex_lock(&late); keep(ticks); pthread_mutex_unlock(&late); return 0;",
    },
    End {
        declare: "static void *leave(void *p) { report(); exit(0); return p; }",
        setup: "",
        last: "{ pthread_t t; pthread_create(&t, 0, leave, 0); pthread_join(t, 0); for (;;) pause(); }",
    },
    End {
        // The last thread would not be it where a library keeps threads of its own.
        declare: "static void *leave(void *p) { report(); exit(0); return p; }",
        setup: "",
        last: "{ pthread_t t; pthread_create(&t, 0, leave, 0); pthread_exit(0); }",
    },
    End {
        declare: "static pthread_mutex_t late = PTHREAD_MUTEX_INITIALIZER; static long ticks; static void *tick(void *p) { for (int i = 0; i < 5; i++) { pthread_mutex_lock(&late); ticks++; pthread_mutex_unlock(&late); } return p; }",
        setup: "",
        // Libraries that have threads of their own may not survive `exit` in a child.
        last: "report(); if (!fork()) { setsid(); pthread_t t; pthread_create(&t, 0, tick, 0); tick(0); pthread_join(t, 0); printf(\"daemon %ld\\n\", ticks); fflush(stdout); _exit(0); } return 0;",
    },
];

/// What every program begins with.
pub(super) const PRELUDE: &str = r#"
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RETRY(call) do { errno = 0; } while ((call) < 0 && errno == EINTR)

#ifdef __cplusplus
extern "C" {
#endif
#define WEAK __attribute__((weak))
WEAK void __tsan_acquire(void *);
WEAK void __tsan_release(void *);
WEAK void AnnotateHappensBefore(const char *, int, const volatile void *);
WEAK void AnnotateHappensAfter(const char *, int, const volatile void *);
WEAK void AnnotateIgnoreReadsBegin(const char *, int);
WEAK void AnnotateIgnoreReadsEnd(const char *, int);
WEAK void AnnotateIgnoreWritesBegin(const char *, int);
WEAK void AnnotateIgnoreWritesEnd(const char *, int);
WEAK void AnnotateBenignRaceSized(const char *, int, const volatile void *, size_t, const char *);
#ifdef __cplusplus
}
#endif
#define MARK(name, ...) do { if (name) name(__VA_ARGS__); } while (0)
#define ACQUIRE(address) MARK(__tsan_acquire, address)
#define RELEASE(address) MARK(__tsan_release, address)
#define HAPPENS_BEFORE(address) MARK(AnnotateHappensBefore, __FILE__, __LINE__, address)
#define HAPPENS_AFTER(address) MARK(AnnotateHappensAfter, __FILE__, __LINE__, address)
#define IGNORE_BEGIN() do { MARK(AnnotateIgnoreReadsBegin, __FILE__, __LINE__); MARK(AnnotateIgnoreWritesBegin, __FILE__, __LINE__); } while (0)
#define IGNORE_END() do { MARK(AnnotateIgnoreWritesEnd, __FILE__, __LINE__); MARK(AnnotateIgnoreReadsEnd, __FILE__, __LINE__); } while (0)
#define BENIGN(address, size) MARK(AnnotateBenignRaceSized, __FILE__, __LINE__, address, size, "on purpose")

#if __has_include(<reweave.h>)
#include <reweave.h>
#define BLOCK_BEGIN(name) reweave_atomic_begin(name)
#define BLOCK_END() reweave_atomic_end()
#else
#define BLOCK_BEGIN(name)
#define BLOCK_END()
#endif

/* Uses a value in a way that no compiler removes. */
static __attribute__((unused)) void keep(long value) {
    static __thread long own;
    own += value;
    __asm__ volatile("" : : "r"(own) : "memory");
}

/* Two milliseconds from now. */
static __attribute__((unused)) struct timespec soon(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += 2000000;
    if (t.tv_nsec >= 1000000000) { t.tv_sec++; t.tv_nsec -= 1000000000; }
    return t;
}

static __attribute__((unused)) void handle(int number, void (*handler)(int)) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(number, &action, 0);
}

static __attribute__((unused)) void mutex_of(pthread_mutex_t *mutex, int type, int is_robust, int inherits) {
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, type);
    if (is_robust) pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    if (inherits) pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(mutex, &a);
}

static __attribute__((unused)) void temporary(char *path) {
    strcpy(path, P_tmpdir "/reweave-lock-");
    memset(path + strlen(path) + 6, 0, 1);
    memset(path + strlen(path), 'X', 6);
    close(mkstemp(path));
}

static __attribute__((unused)) int tcp_listen(struct sockaddr_in *at) {
    socklen_t size = sizeof *at;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    memset(at, 0, sizeof *at);
    at->sin_family = AF_INET;
    at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(s, (struct sockaddr *)at, size) || listen(s, 4) || getsockname(s, (struct sockaddr *)at, &size)) abort();
    return s;
}

static __attribute__((unused)) void tcp_pair(int *pair) {
    struct sockaddr_in at;
    int s = tcp_listen(&at);
    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(pair[0], (struct sockaddr *)&at, sizeof at)) abort();
    pair[1] = accept(s, 0, 0);
}
"#;

pub(super) const CPP_INCLUDES: &str = r"
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>
";

pub(super) const ABSEIL_INCLUDES: &str = r"
#include <absl/synchronization/barrier.h>
#include <absl/synchronization/blocking_counter.h>
#include <absl/synchronization/mutex.h>
#include <absl/synchronization/notification.h>
";

/// What [`LIBRARY`] has to offer.
pub(super) const LIBRARY_INTERFACE: &str = r"
int plain_trylock(int *);
void plain_lock(int *);
void plain_unlock(int *);
void plain_flag_set(int *, int);
int plain_flag_get(int *);
void plain_flag_wait(int *, int);
struct plain_queue *plain_queue_new(void);
void plain_queue_push(struct plain_queue *, void *);
void *plain_queue_pop(struct plain_queue *);
void plain_run(void (*)(void *), void *);
";

/// A library that is built without us: a lock, a flag and a queue of atomics and futexes.
pub(super) const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int plain_trylock(int *lock) {
    int free_value = 0;
    return __atomic_compare_exchange_n(lock, &free_value, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

void plain_lock(int *lock) {
    if (plain_trylock(lock)) return;
    while (__atomic_exchange_n(lock, 2, __ATOMIC_ACQUIRE)) syscall(SYS_futex, lock, FUTEX_WAIT_PRIVATE, 2, 0, 0, 0);
}

void plain_unlock(int *lock) {
    if (__atomic_exchange_n(lock, 0, __ATOMIC_RELEASE) == 2) syscall(SYS_futex, lock, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

void plain_flag_set(int *flag, int value) {
    __atomic_store_n(flag, value, __ATOMIC_RELEASE);
    syscall(SYS_futex, flag, FUTEX_WAKE_PRIVATE, 100, 0, 0, 0);
}

int plain_flag_get(int *flag) { return __atomic_load_n(flag, __ATOMIC_ACQUIRE); }

void plain_flag_wait(int *flag, int value) {
    for (int seen; (seen = plain_flag_get(flag)) < value; ) syscall(SYS_futex, flag, FUTEX_WAIT_PRIVATE, seen, 0, 0, 0);
}

struct plain_queue { int lock, count, taken; void *items[64]; };

struct plain_queue *plain_queue_new(void) { return calloc(1, sizeof(struct plain_queue)); }

void plain_queue_push(struct plain_queue *queue, void *item) {
    plain_lock(&queue->lock);
    queue->items[queue->count % 64] = item;
    plain_flag_set(&queue->count, queue->count + 1);
    plain_unlock(&queue->lock);
}

void *plain_queue_pop(struct plain_queue *queue) {
    for (;;) {
        void *item = 0;
        plain_lock(&queue->lock);
        if (queue->taken < queue->count) item = queue->items[queue->taken++ % 64];
        int taken = queue->taken;
        plain_unlock(&queue->lock);
        if (item) return item;
        plain_flag_wait(&queue->count, taken + 1);
    }
}

struct call { void (*function)(void *); void *argument; };

static void *call(void *data) {
    struct call *call = data;
    call->function(call->argument);
    return 0;
}

void plain_run(void (*function)(void *), void *argument) {
    struct call data = {function, argument};
    pthread_t thread;
    pthread_create(&thread, 0, call, &data);
    pthread_join(thread, 0);
}
"#;
