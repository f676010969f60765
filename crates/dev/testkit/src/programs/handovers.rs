//! Hand-overs: what a thread did before it gives comes before what another does after it has taken.
//!
//! In the code, `$` is the instance's number and `@` the round: 1 when the instance is used first.
//! Rounds go from one thread to one other. A giver may be ahead of the taker.

use super::Needs::{Abseil, C, Cpp, Glib, Plain, Tbb};
use super::{HANDOVER, Handover, Use};

/// Every kind of hand-over.
#[rustfmt::skip]
pub(super) const HANDOVERS: &[Handover] = &[
    Handover {
        name: "condition signal",
        declare: "static pthread_mutex_t m_$ = PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t c_$ = PTHREAD_COND_INITIALIZER; static int ready_$;",
        give: "pthread_mutex_lock(&m_$); ready_$ = @; pthread_cond_signal(&c_$); pthread_mutex_unlock(&m_$);",
        take: "pthread_mutex_lock(&m_$); while (ready_$ < @) pthread_cond_wait(&c_$, &m_$); pthread_mutex_unlock(&m_$);",
        ..HANDOVER
    },
    Handover {
        name: "condition broadcast after unlock",
        usage: Use::Many,
        declare: "static pthread_mutex_t m_$ = PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t c_$ = PTHREAD_COND_INITIALIZER; static int ready_$;",
        give: "pthread_mutex_lock(&m_$); ready_$ = @; pthread_mutex_unlock(&m_$); pthread_cond_broadcast(&c_$);",
        take: "pthread_mutex_lock(&m_$); while (ready_$ < @) pthread_cond_wait(&c_$, &m_$); pthread_mutex_unlock(&m_$);",
        ..HANDOVER
    },
    Handover {
        name: "condition timed wait",
        usage: Use::Many,
        declare: "static pthread_mutex_t m_$ = PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t c_$ = PTHREAD_COND_INITIALIZER; static int ready_$;",
        give: "pthread_mutex_lock(&m_$); ready_$ = @; pthread_cond_broadcast(&c_$); pthread_mutex_unlock(&m_$);",
        take: "pthread_mutex_lock(&m_$); while (ready_$ < @) { struct timespec t = soon(CLOCK_REALTIME); pthread_cond_timedwait(&c_$, &m_$, &t); } pthread_mutex_unlock(&m_$);",
        ..HANDOVER
    },
    Handover {
        name: "condition of a monotonic clock",
        declare: "static pthread_mutex_t m_$ = PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t c_$; static int ready_$;",
        setup: "pthread_condattr_t a_$; pthread_condattr_init(&a_$); pthread_condattr_setclock(&a_$, CLOCK_MONOTONIC); pthread_cond_init(&c_$, &a_$);",
        give: "pthread_mutex_lock(&m_$); ready_$ = @; pthread_cond_signal(&c_$); pthread_mutex_unlock(&m_$);",
        take: "pthread_mutex_lock(&m_$); while (ready_$ < @) { struct timespec t = soon(CLOCK_MONOTONIC); if (@ % 2) pthread_cond_timedwait(&c_$, &m_$, &t); else pthread_cond_clockwait(&c_$, &m_$, CLOCK_MONOTONIC, &t); } pthread_mutex_unlock(&m_$);",
        ..HANDOVER
    },
    Handover {
        name: "polling under a lock",
        usage: Use::Many,
        declare: "static pthread_mutex_t m_$ = PTHREAD_MUTEX_INITIALIZER; static int ready_$;",
        give: "pthread_mutex_lock(&m_$); ready_$ = @; pthread_mutex_unlock(&m_$);",
        take: "for (int seen = 0; seen < @; ) { if (!pthread_mutex_trylock(&m_$)) { seen = ready_$; pthread_mutex_unlock(&m_$); } sched_yield(); }",
        ..HANDOVER
    },
    Handover {
        name: "polling under a shared lock",
        usage: Use::Many,
        declare: "static pthread_rwlock_t m_$ = PTHREAD_RWLOCK_INITIALIZER; static int ready_$;",
        give: "pthread_rwlock_wrlock(&m_$); ready_$ = @; pthread_rwlock_unlock(&m_$);",
        take: "for (int seen = 0; seen < @; ) { pthread_rwlock_rdlock(&m_$); seen = ready_$; pthread_rwlock_unlock(&m_$); sched_yield(); }",
        ..HANDOVER
    },
    Handover {
        name: "semaphore",
        declare: "static sem_t s_$;",
        setup: "sem_init(&s_$, 0, 0);",
        give: "sem_post(&s_$);",
        take: "RETRY(sem_wait(&s_$));",
        ..HANDOVER
    },
    Handover {
        name: "semaphore tried and timed",
        declare: "static sem_t s_$;",
        setup: "sem_init(&s_$, 0, 0);",
        give: "sem_post(&s_$);",
        take: "if (@ % 2) while (sem_trywait(&s_$)) sched_yield(); else for (;;) { struct timespec t = soon(CLOCK_REALTIME); if (!sem_timedwait(&s_$, &t)) break; }",
        ..HANDOVER
    },
    Handover {
        name: "semaphore whose value is read",
        usage: Use::Many,
        knows_tsan: false,
        declare: "static sem_t s_$;",
        setup: "sem_init(&s_$, 0, 0);",
        give: "sem_post(&s_$);",
        take: "for (int seen = 0; seen < @; sem_getvalue(&s_$, &seen)) sched_yield();",
        ..HANDOVER
    },
    Handover {
        name: "named semaphore",
        declare: "static sem_t *s_$;",
        setup: "{ char n[64]; snprintf(n, sizeof n, \"/reweave-%d-$\", (int)getpid()); s_$ = sem_open(n, O_CREAT | O_EXCL, 0600, 0); sem_unlink(n); }",
        give: "sem_post(s_$);",
        take: "RETRY(sem_wait(s_$));",
        ..HANDOVER
    },
    Handover {
        name: "barrier",
        usage: Use::Meeting,
        declare: "static pthread_barrier_t b_$;",
        setup: "pthread_barrier_init(&b_$, 0, 2);",
        give: "pthread_barrier_wait(&b_$);",
        take: "pthread_barrier_wait(&b_$);",
        ..HANDOVER
    },
    Handover {
        name: "pipe",
        declare: "static int p_$[2];",
        setup: "if (pipe(p_$)) abort();",
        give: "{ char c = @; RETRY(write(p_$[1], &c, 1)); }",
        take: "{ char c; RETRY(read(p_$[0], &c, 1)); }",
        ..HANDOVER
    },
    Handover {
        name: "pipe, vectors",
        declare: "static int p_$[2];",
        setup: "if (pipe2(p_$, O_CLOEXEC)) abort();",
        give: "{ char c[2] = {1, 2}; struct iovec v[2] = {{c, 1}, {c + 1, 1}}; RETRY(writev(p_$[1], v, 2)); }",
        take: "{ char c[2]; struct iovec v[2] = {{c, 1}, {c + 1, 1}}; RETRY(readv(p_$[0], v, 2)); }",
        ..HANDOVER
    },
    Handover {
        name: "stream over a pipe",
        knows_tsan: false,
        declare: "static int p_$[2]; static FILE *in_$, *out_$;",
        setup: "if (pipe(p_$)) abort(); in_$ = fdopen(p_$[0], \"r\"); out_$ = fdopen(p_$[1], \"w\");",
        give: "fprintf(out_$, \"%d\\n\", @); fflush(out_$);",
        take: "{ char line[32]; while (!fgets(line, sizeof line, in_$)) clearerr(in_$); }",
        ..HANDOVER
    },
    Handover {
        name: "poll and a pipe",
        declare: "static int p_$[2];",
        setup: "if (pipe(p_$)) abort();",
        give: "{ char c = @; RETRY(write(p_$[1], &c, 1)); }",
        take: "{ struct pollfd f = {p_$[0], POLLIN, 0}; char c; RETRY(poll(&f, 1, -1)); RETRY(read(p_$[0], &c, 1)); }",
        ..HANDOVER
    },
    Handover {
        name: "poll alone",
        usage: Use::Once,
        knows_tsan: false,
        declare: "static int p_$[2];",
        setup: "if (pipe(p_$)) abort();",
        give: "{ char c = @; RETRY(write(p_$[1], &c, 1)); }",
        take: "{ struct pollfd f = {p_$[0], POLLIN, 0}; RETRY(poll(&f, 1, -1)); }",
        ..HANDOVER
    },
    Handover {
        name: "select and a socket",
        declare: "static int p_$[2];",
        setup: "if (socketpair(AF_UNIX, SOCK_STREAM, 0, p_$)) abort();",
        give: "{ char c = @; RETRY(send(p_$[1], &c, 1, 0)); }",
        take: "{ char c; fd_set set; do { FD_ZERO(&set); FD_SET(p_$[0], &set); } while (select(p_$[0] + 1, &set, 0, 0, 0) < 0); RETRY(recv(p_$[0], &c, 1, 0)); }",
        ..HANDOVER
    },
    Handover {
        name: "end of file of a pipe",
        usage: Use::Once,
        declare: "static int p_$[2];",
        setup: "if (pipe(p_$)) abort();",
        give: "close(p_$[1]);",
        take: "{ char c; RETRY(read(p_$[0], &c, 1)); }",
        knows_tsan: false,
        ..HANDOVER
    },
    Handover {
        name: "datagrams",
        declare: "static int p_$[2];",
        setup: "if (socketpair(AF_UNIX, SOCK_DGRAM, 0, p_$)) abort();",
        give: "{ char c = @; struct iovec v = {&c, 1}; struct msghdr h; memset(&h, 0, sizeof h); h.msg_iov = &v; h.msg_iovlen = 1; RETRY(sendmsg(p_$[0], &h, 0)); }",
        take: "{ char c; struct iovec v = {&c, 1}; struct msghdr h; memset(&h, 0, sizeof h); h.msg_iov = &v; h.msg_iovlen = 1; RETRY(recvmsg(p_$[1], &h, 0)); }",
        ..HANDOVER
    },
    Handover {
        name: "TCP",
        declare: "static int p_$[2];",
        setup: "tcp_pair(p_$);",
        give: "{ char c = @; RETRY(send(p_$[1], &c, 1, MSG_NOSIGNAL)); }",
        take: "{ char c; RETRY(recv(p_$[0], &c, 1, 0)); }",
        ..HANDOVER
    },
    Handover {
        name: "TCP connected by the giver",
        usage: Use::Once,
        declare: "static int p_$; static struct sockaddr_in at_$;",
        setup: "p_$ = tcp_listen(&at_$);",
        give: "{ int s = socket(AF_INET, SOCK_STREAM, 0); RETRY(connect(s, (struct sockaddr *)&at_$, sizeof at_$)); }",
        take: "{ int s; RETRY(s = accept(p_$, 0, 0)); }",
        ..HANDOVER
    },
    Handover {
        name: "eventfd",
        declare: "static int e_$;",
        setup: "e_$ = eventfd(0, EFD_SEMAPHORE);",
        give: "{ uint64_t one = 1; RETRY(write(e_$, &one, 8)); }",
        take: "{ uint64_t one; RETRY(read(e_$, &one, 8)); }",
        ..HANDOVER
    },
    Handover {
        name: "eventfd by its functions",
        declare: "static int e_$;",
        setup: "e_$ = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);",
        give: "eventfd_write(e_$, 1);",
        take: "{ eventfd_t one; RETRY(eventfd_read(e_$, &one)); }",
        ..HANDOVER
    },
    Handover {
        name: "epoll and an eventfd",
        declare: "static int e_$, q_$;",
        setup: "e_$ = eventfd(0, EFD_SEMAPHORE); q_$ = epoll_create1(0); { struct epoll_event v; memset(&v, 0, sizeof v); v.events = EPOLLIN; epoll_ctl(q_$, EPOLL_CTL_ADD, e_$, &v); }",
        give: "{ uint64_t one = 1; RETRY(write(e_$, &one, 8)); }",
        take: "{ struct epoll_event v; uint64_t one; RETRY(epoll_wait(q_$, &v, 1, -1)); RETRY(read(e_$, &one, 8)); }",
        ..HANDOVER
    },
    Handover {
        name: "epoll and a registration by the giver",
        usage: Use::Once,
        declare: "static int e_$, q_$;",
        setup: "e_$ = eventfd(1, 0); q_$ = epoll_create1(0);",
        give: "{ struct epoll_event v; memset(&v, 0, sizeof v); v.events = EPOLLIN; epoll_ctl(q_$, EPOLL_CTL_ADD, e_$, &v); }",
        take: "{ struct epoll_event v; RETRY(epoll_wait(q_$, &v, 1, -1)); }",
        ..HANDOVER
    },
    Handover {
        name: "POSIX message queue",
        knows_tsan: false,
        declare: "static mqd_t q_$;",
        setup: "{ char n[64]; snprintf(n, sizeof n, \"/reweave-%d-$\", (int)getpid()); struct mq_attr a; memset(&a, 0, sizeof a); a.mq_maxmsg = 8; a.mq_msgsize = 8; q_$ = mq_open(n, O_CREAT | O_RDWR, 0600, &a); if (q_$ < 0) abort(); mq_unlink(n); }",
        give: "RETRY(mq_send(q_$, \"x\", 1, 0));",
        take: "{ char c[8]; RETRY(mq_receive(q_$, c, 8, 0)); }",
        ..HANDOVER
    },
    Handover {
        name: "System V message queue",
        knows_tsan: false,
        declare: "static int q_$;",
        setup: "q_$ = msgget(IPC_PRIVATE, 0600); if (q_$ < 0) abort();",
        give: "{ struct { long type; char c[8]; } v = {1, \"x\"}; RETRY(msgsnd(q_$, &v, 8, 0)); }",
        take: "{ struct { long type; char c[8]; } v; RETRY(msgrcv(q_$, &v, 8, 0, 0)); }",
        teardown: "msgctl(q_$, IPC_RMID, 0);",
        ..HANDOVER
    },
    Handover {
        name: "System V semaphore",
        knows_tsan: false,
        declare: "static int q_$;",
        setup: "q_$ = semget(IPC_PRIVATE, 1, 0600); if (q_$ < 0) abort();",
        give: "{ struct sembuf v = {0, 1, 0}; RETRY(semop(q_$, &v, 1)); }",
        take: "{ struct sembuf v = {0, -1, 0}; RETRY(semop(q_$, &v, 1)); }",
        teardown: "semctl(q_$, 0, IPC_RMID);",
        ..HANDOVER
    },
    Handover {
        name: "release, acquire, spinning",
        usage: Use::Many,
        declare: "static int f_$;",
        give: "__atomic_store_n(&f_$, @, __ATOMIC_RELEASE);",
        take: "while (__atomic_load_n(&f_$, __ATOMIC_ACQUIRE) < @) {}",
        ..HANDOVER
    },
    Handover {
        name: "release, acquire, yielding",
        usage: Use::Many,
        declare: "static long f_$;",
        give: "__atomic_store_n(&f_$, @, __ATOMIC_RELEASE);",
        take: "while (__atomic_load_n(&f_$, __ATOMIC_ACQUIRE) < @) sched_yield();",
        ..HANDOVER
    },
    Handover {
        name: "sequentially consistent, sleeping",
        usage: Use::Many,
        declare: "static short f_$;",
        give: "__atomic_store_n(&f_$, @, __ATOMIC_SEQ_CST);",
        take: "while (__atomic_load_n(&f_$, __ATOMIC_SEQ_CST) < @) usleep(50);",
        ..HANDOVER
    },
    Handover {
        name: "old builtins",
        declare: "static int f_$;",
        give: "__sync_fetch_and_add(&f_$, 1);",
        take: "while (__sync_fetch_and_add(&f_$, 0) < @) sched_yield();",
        ..HANDOVER
    },
    Handover {
        name: "fences",
        usage: Use::Many,
        knows_tsan: false,
        declare: "static int f_$;",
        give: "__atomic_thread_fence(__ATOMIC_RELEASE); __atomic_store_n(&f_$, @, __ATOMIC_RELAXED);",
        take: "while (__atomic_load_n(&f_$, __ATOMIC_RELAXED) < @) sched_yield(); __atomic_thread_fence(__ATOMIC_ACQUIRE);",
        ..HANDOVER
    },
    Handover {
        name: "counter that is taken from",
        declare: "static int f_$;",
        give: "__atomic_fetch_add(&f_$, 1, __ATOMIC_RELEASE);",
        take: "for (int v = 0; ; sched_yield()) { v = __atomic_load_n(&f_$, __ATOMIC_RELAXED); if (v > 0 && __atomic_compare_exchange_n(&f_$, &v, v - 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) break; }",
        ..HANDOVER
    },
    Handover {
        name: "release sequence",
        usage: Use::Once,
        declare: "static int f_$;",
        give: "__atomic_store_n(&f_$, 1, __ATOMIC_RELEASE); __atomic_fetch_add(&f_$, 1, __ATOMIC_RELAXED);",
        take: "while (__atomic_load_n(&f_$, __ATOMIC_ACQUIRE) < 2) sched_yield();",
        ..HANDOVER
    },
    Handover {
        name: "pointer to a message",
        usage: Use::Once,
        declare: "static long *f_$;",
        give: "{ long *v = (long *)malloc(2 * sizeof *v); v[0] = 7; v[1] = @; __atomic_store_n(&f_$, v, __ATOMIC_RELEASE); }",
        take: "{ long *v; while (!(v = __atomic_exchange_n(&f_$, (long *)0, __ATOMIC_ACQUIRE))) sched_yield(); keep(v[0] + v[1]); free(v); }",
        ..HANDOVER
    },
    Handover {
        name: "stack of messages",
        declare: "struct n_$ { struct n_$ *next; long value; }; static struct n_$ *f_$;",
        give: "{ struct n_$ *v = (struct n_$ *)malloc(sizeof *v); v->value = @; v->next = __atomic_load_n(&f_$, __ATOMIC_RELAXED); while (!__atomic_compare_exchange_n(&f_$, &v->next, v, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {} }",
        // One thread alone takes, so the head cannot come again.
        take: "for (struct n_$ *v; ; sched_yield()) { v = __atomic_load_n(&f_$, __ATOMIC_ACQUIRE); if (v && __atomic_compare_exchange_n(&f_$, &v, v->next, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) { keep(v->value); free(v); break; } }",
        ..HANDOVER
    },
    Handover {
        name: "ring of messages",
        declare: "static long ring_$[4]; static unsigned head_$, tail_$;",
        give: "{ unsigned h = __atomic_load_n(&head_$, __ATOMIC_RELAXED); while (h - __atomic_load_n(&tail_$, __ATOMIC_ACQUIRE) == 4) sched_yield(); ring_$[h % 4] = @; __atomic_store_n(&head_$, h + 1, __ATOMIC_RELEASE); }",
        take: "{ unsigned t = __atomic_load_n(&tail_$, __ATOMIC_RELAXED); while (__atomic_load_n(&head_$, __ATOMIC_ACQUIRE) == t) sched_yield(); keep(ring_$[t % 4]); __atomic_store_n(&tail_$, t + 1, __ATOMIC_RELEASE); }",
        ..HANDOVER
    },
    Handover {
        name: "futex",
        usage: Use::Many,
        declare: "static int f_$;",
        give: "__atomic_store_n(&f_$, @, __ATOMIC_RELEASE); syscall(SYS_futex, &f_$, FUTEX_WAKE, 100, 0, 0, 0);",
        take: "for (int v; (v = __atomic_load_n(&f_$, __ATOMIC_ACQUIRE)) < @; ) syscall(SYS_futex, &f_$, FUTEX_WAIT, v, 0, 0, 0);",
        ..HANDOVER
    },
    Handover {
        name: "futex, private and timed",
        usage: Use::Many,
        declare: "static int f_$;",
        give: "__atomic_store_n(&f_$, @, __ATOMIC_SEQ_CST); syscall(SYS_futex, &f_$, FUTEX_WAKE_PRIVATE, 100, 0, 0, 0);",
        take: "for (int v; (v = __atomic_load_n(&f_$, __ATOMIC_SEQ_CST)) < @; ) { struct timespec t = {0, 2000000}; syscall(SYS_futex, &f_$, FUTEX_WAIT_PRIVATE, v, &t, 0, 0); }",
        ..HANDOVER
    },
    Handover {
        name: "mutex unlocked by another thread",
        usage: Use::Once,
        knows_tsan: false,
        declare: "static pthread_mutex_t m_$ = PTHREAD_MUTEX_INITIALIZER;",
        setup: "pthread_mutex_lock(&m_$);",
        give: "pthread_mutex_unlock(&m_$);",
        take: "pthread_mutex_lock(&m_$); pthread_mutex_unlock(&m_$);",
        ..HANDOVER
    },
    Handover {
        name: "sigwait",
        knows_tsan: false,
        declare: "static sigset_t set_$;",
        setup: "sigemptyset(&set_$); sigaddset(&set_$, SIGNAL($)); pthread_sigmask(SIG_BLOCK, &set_$, 0);",
        give: "kill(getpid(), SIGNAL($));",
        take: "{ int s; sigwait(&set_$, &s); }",
        ..HANDOVER
    },
    Handover {
        name: "queued signal",
        knows_tsan: false,
        declare: "static sigset_t set_$;",
        setup: "sigemptyset(&set_$); sigaddset(&set_$, SIGNAL($)); pthread_sigmask(SIG_BLOCK, &set_$, 0);",
        give: "{ union sigval v; v.sival_int = @; sigqueue(getpid(), SIGNAL($), v); }",
        take: "{ siginfo_t v; struct timespec t = {1, 0}; if (@ % 2) RETRY(sigwaitinfo(&set_$, &v)); else while (sigtimedwait(&set_$, &v, &t) < 0) {} }",
        ..HANDOVER
    },
    Handover {
        name: "signalfd",
        knows_tsan: false,
        declare: "static sigset_t set_$; static int e_$;",
        setup: "sigemptyset(&set_$); sigaddset(&set_$, SIGNAL($)); pthread_sigmask(SIG_BLOCK, &set_$, 0); e_$ = signalfd(-1, &set_$, 0);",
        give: "kill(getpid(), SIGNAL($));",
        take: "{ struct signalfd_siginfo v; RETRY(read(e_$, &v, sizeof v)); }",
        ..HANDOVER
    },
    Handover {
        name: "handler that posts",
        knows_tsan: false,
        declare: "static sem_t s_$; static void on_$(int s) { (void)s; int e = errno; sem_post(&s_$); errno = e; }",
        setup: "sem_init(&s_$, 0, 0); handle(SIGNAL($), on_$);",
        give: "kill(getpid(), SIGNAL($));",
        take: "RETRY(sem_wait(&s_$));",
        ..HANDOVER
    },
    Handover {
        name: "handler in the taker's thread",
        usage: Use::MeetingOnce,
        knows_tsan: false,
        declare: "static pthread_t who_$; static int known_$, f_$; static void on_$(int s) { (void)s; __atomic_store_n(&f_$, 1, __ATOMIC_RELEASE); }",
        setup: "handle(SIGNAL($), on_$);",
        give: "while (!__atomic_load_n(&known_$, __ATOMIC_ACQUIRE)) sched_yield(); pthread_kill(who_$, SIGNAL($));",
        take: "who_$ = pthread_self(); __atomic_store_n(&known_$, 1, __ATOMIC_RELEASE); while (!__atomic_load_n(&f_$, __ATOMIC_ACQUIRE)) sched_yield();",
        ..HANDOVER
    },
    Handover {
        name: "annotated assembler",
        usage: Use::Many,
        declare: "static int f_$;",
        give: "RELEASE(&f_$); __asm__ volatile(\"movl %1, %0\" : \"=m\"(f_$) : \"r\"(@) : \"memory\");",
        take: "for (int v = 0; v < @; sched_yield()) __asm__ volatile(\"movl %1, %0\" : \"=r\"(v) : \"m\"(f_$) : \"memory\"); ACQUIRE(&f_$);",
        ..HANDOVER
    },
    Handover {
        name: "annotated as happens-before",
        usage: Use::Many,
        declare: "static int f_$;",
        give: "HAPPENS_BEFORE(&f_$); __asm__ volatile(\"movl %1, %0\" : \"=m\"(f_$) : \"r\"(@) : \"memory\");",
        take: "for (int v = 0; v < @; sched_yield()) __asm__ volatile(\"movl %1, %0\" : \"=r\"(v) : \"m\"(f_$) : \"memory\"); HAPPENS_AFTER(&f_$);",
        ..HANDOVER
    },
    Handover {
        name: "atomics of C11",
        needs: C,
        usage: Use::Many,
        declare: "static _Atomic int f_$;",
        give: "f_$ = @;",
        take: "while (f_$ < @) thrd_yield();",
        ..HANDOVER
    },
    Handover {
        name: "atomic flag of C11",
        needs: C,
        usage: Use::Once,
        declare: "static atomic_flag f_$ = ATOMIC_FLAG_INIT;",
        setup: "atomic_flag_test_and_set(&f_$);",
        give: "atomic_flag_clear_explicit(&f_$, memory_order_release);",
        take: "while (atomic_flag_test_and_set_explicit(&f_$, memory_order_acquire)) thrd_yield();",
        ..HANDOVER
    },
    Handover {
        name: "condition of C11",
        needs: C,
        knows_tsan: false,
        declare: "static mtx_t m_$; static cnd_t c_$; static int ready_$;",
        setup: "mtx_init(&m_$, mtx_plain); cnd_init(&c_$);",
        give: "mtx_lock(&m_$); ready_$ = @; cnd_signal(&c_$); mtx_unlock(&m_$);",
        take: "mtx_lock(&m_$); while (ready_$ < @) { struct timespec t = soon(CLOCK_REALTIME); if (@ % 2) cnd_wait(&c_$, &m_$); else cnd_timedwait(&c_$, &m_$, &t); } mtx_unlock(&m_$);",
        ..HANDOVER
    },
    Handover {
        name: "std::latch",
        needs: Cpp,
        usage: Use::OnceMany,
        declare: "static std::latch l_${1};",
        give: "l_$.count_down();",
        take: "l_$.wait();",
        ..HANDOVER
    },
    Handover {
        name: "std::barrier",
        needs: Cpp,
        usage: Use::Meeting,
        declare: "static std::barrier<> b_${2};",
        give: "b_$.arrive_and_wait();",
        take: "b_$.arrive_and_wait();",
        ..HANDOVER
    },
    Handover {
        name: "std::counting_semaphore",
        needs: Cpp,
        declare: "static std::counting_semaphore<64> s_${0};",
        give: "s_$.release();",
        take: "s_$.acquire();",
        ..HANDOVER
    },
    Handover {
        name: "std::atomic that is waited for",
        needs: Cpp,
        usage: Use::Many,
        declare: "static std::atomic<int> f_${0};",
        give: "f_$.store(@, std::memory_order_release); f_$.notify_all();",
        take: "for (int v; (v = f_$.load(std::memory_order_acquire)) < @; ) f_$.wait(v, std::memory_order_acquire);",
        ..HANDOVER
    },
    Handover {
        name: "std::atomic_flag",
        needs: Cpp,
        usage: Use::OnceMany,
        declare: "static std::atomic_flag f_$;",
        give: "f_$.test_and_set(); f_$.notify_all();",
        take: "f_$.wait(false);",
        ..HANDOVER
    },
    Handover {
        name: "std::promise",
        needs: Cpp,
        usage: Use::Once,
        declare: "static std::promise<std::string> p_$; static std::future<std::string> v_$ = p_$.get_future();",
        give: "p_$.set_value(\"a text that is longer than what fits into the object\");",
        take: "keep((long)v_$.get().size());",
        ..HANDOVER
    },
    Handover {
        name: "std::shared_future",
        needs: Cpp,
        usage: Use::OnceMany,
        declare: "static std::promise<void> p_$; static std::shared_future<void> v_$ = p_$.get_future().share();",
        give: "p_$.set_value();",
        take: "{ auto v = v_$; v.wait(); }",
        ..HANDOVER
    },
    Handover {
        name: "std::condition_variable",
        needs: Cpp,
        usage: Use::Many,
        declare: "static std::mutex m_$; static std::condition_variable c_$; static int ready_$;",
        give: "{ std::lock_guard<std::mutex> guard(m_$); ready_$ = @; } c_$.notify_all();",
        take: "{ std::unique_lock<std::mutex> guard(m_$); if (@ % 2) c_$.wait(guard, [] { return ready_$ >= @; }); else while (ready_$ < @) c_$.wait_for(guard, std::chrono::milliseconds(2)); }",
        ..HANDOVER
    },
    Handover {
        name: "std::condition_variable_any",
        needs: Cpp,
        usage: Use::Many,
        declare: "static std::shared_mutex m_$; static std::condition_variable_any c_$; static int ready_$;",
        give: "{ std::lock_guard<std::shared_mutex> guard(m_$); ready_$ = @; } c_$.notify_all();",
        take: "{ std::shared_lock<std::shared_mutex> guard(m_$); while (ready_$ < @) c_$.wait(guard); }",
        ..HANDOVER
    },
    Handover {
        name: "std::shared_ptr",
        needs: Cpp,
        usage: Use::Once,
        declare: "static std::atomic<std::vector<int> *> f_$;",
        give: "f_$.store(new std::vector<int>(5, @), std::memory_order_release);",
        take: "{ std::vector<int> *v; while (!(v = f_$.load(std::memory_order_acquire))) std::this_thread::yield(); std::shared_ptr<std::vector<int>> owned(v); keep((long)owned->size()); }",
        ..HANDOVER
    },
    Handover {
        name: "GCond",
        needs: Glib,
        knows_tsan: false,
        declare: "static GMutex m_$; static GCond c_$; static int ready_$;",
        give: "g_mutex_lock(&m_$); ready_$ = @; g_cond_broadcast(&c_$); g_mutex_unlock(&m_$);",
        take: "g_mutex_lock(&m_$); while (ready_$ < @) { if (@ % 2) g_cond_wait(&c_$, &m_$); else g_cond_wait_until(&c_$, &m_$, g_get_monotonic_time() + 2000); } g_mutex_unlock(&m_$);",
        ..HANDOVER
    },
    Handover {
        name: "GAsyncQueue",
        needs: Glib,
        knows_tsan: false,
        declare: "static GAsyncQueue *q_$;",
        setup: "q_$ = g_async_queue_new();",
        give: "{ long *v = g_new(long, 2); v[1] = @; g_async_queue_push(q_$, v); }",
        take: "{ long *v; if (@ % 2) v = (long *)g_async_queue_pop(q_$); else while (!(v = (long *)g_async_queue_timeout_pop(q_$, 2000))) {} keep(v[1]); g_free(v); }",
        ..HANDOVER
    },
    Handover {
        name: "GLib atomics",
        needs: Glib,
        usage: Use::Many,
        declare: "static gint f_$;",
        give: "g_atomic_int_set(&f_$, @);",
        take: "while (g_atomic_int_get(&f_$) < @) g_thread_yield();",
        ..HANDOVER
    },
    Handover {
        name: "absl::Notification",
        needs: Abseil,
        usage: Use::OnceMany,
        knows_tsan: false,
        declare: "static absl::Notification n_$;",
        give: "n_$.Notify();",
        take: "n_$.WaitForNotification();",
        ..HANDOVER
    },
    Handover {
        name: "absl::BlockingCounter",
        needs: Abseil,
        usage: Use::Once,
        knows_tsan: false,
        declare: "static absl::BlockingCounter n_${1};",
        give: "n_$.DecrementCount();",
        take: "n_$.Wait();",
        ..HANDOVER
    },
    Handover {
        name: "absl::CondVar",
        needs: Abseil,
        knows_tsan: false,
        declare: "static absl::Mutex m_$; static absl::CondVar c_$; static int ready_$;",
        give: "m_$.Lock(); ready_$ = @; c_$.SignalAll(); m_$.Unlock();",
        take: "m_$.Lock(); while (ready_$ < @) { if (@ % 2) c_$.Wait(&m_$); else c_$.WaitWithTimeout(&m_$, absl::Milliseconds(2)); } m_$.Unlock();",
        ..HANDOVER
    },
    Handover {
        name: "absl::Mutex that awaits",
        needs: Abseil,
        usage: Use::Once,
        knows_tsan: false,
        declare: "static absl::Mutex m_$; static bool ready_$;",
        give: "m_$.Lock(); ready_$ = true; m_$.Unlock();",
        take: "m_$.LockWhen(absl::Condition(&ready_$)); m_$.Unlock();",
        ..HANDOVER
    },
    Handover {
        name: "absl::Barrier",
        needs: Abseil,
        usage: Use::MeetingOnce,
        knows_tsan: false,
        declare: "static absl::Barrier *b_$ = new absl::Barrier(2);",
        give: "b_$->Block();",
        take: "b_$->Block();",
        ..HANDOVER
    },
    Handover {
        name: "tbb::concurrent_queue",
        needs: Tbb,
        knows_tsan: false,
        declare: "static tbb::concurrent_queue<int> q_$;",
        give: "q_$.push(@);",
        take: "for (int v; !q_$.try_pop(v); ) sched_yield();",
        ..HANDOVER
    },
    Handover {
        name: "tbb::concurrent_bounded_queue",
        needs: Tbb,
        knows_tsan: false,
        declare: "static tbb::concurrent_bounded_queue<std::string> q_$;",
        give: "q_$.push(\"text\");",
        take: "{ std::string v; q_$.pop(v); keep((long)v.size()); }",
        ..HANDOVER
    },
    Handover {
        name: "tbb::concurrent_hash_map",
        needs: Tbb,
        usage: Use::Once,
        knows_tsan: false,
        declare: "static tbb::concurrent_hash_map<int, int> q_$;",
        give: "q_$.insert({7, @});",
        take: "for (;; sched_yield()) { tbb::concurrent_hash_map<int, int>::const_accessor v; if (q_$.find(v, 7)) { keep(v->second); break; } }",
        ..HANDOVER
    },
    Handover {
        name: "queue of a library",
        needs: Plain,
        knows_tsan: false,
        declare: "static struct plain_queue *q_$;",
        setup: "q_$ = plain_queue_new();",
        give: "{ long *v = (long *)malloc(2 * sizeof *v); v[0] = @; plain_queue_push(q_$, v); }",
        take: "{ long *v = (long *)plain_queue_pop(q_$); keep(v[0]); free(v); }",
        ..HANDOVER
    },
    Handover {
        name: "flag of a library",
        needs: Plain,
        usage: Use::Many,
        knows_tsan: false,
        declare: "static int f_$;",
        give: "plain_flag_set(&f_$, @);",
        take: "plain_flag_wait(&f_$, @);",
        ..HANDOVER
    },
    Handover {
        name: "polled flag of a library",
        needs: Plain,
        usage: Use::Many,
        knows_tsan: false,
        declare: "static int f_$;",
        give: "plain_flag_set(&f_$, @);",
        take: "while (plain_flag_get(&f_$) < @) sched_yield();",
        ..HANDOVER
    },
];
