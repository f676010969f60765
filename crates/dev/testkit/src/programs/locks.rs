//! Locks: whoever holds one has what it guards for itself, or shares it with readers.
//!
//! In the code, `$` is the instance's number. An acquire and its release stand in one block, so
//! either may declare variables for the other.

use super::Needs::{Abseil, C, Cpp, Glib, OpenMp, Plain, Tbb};
use super::{LOCK, Lock};

/// Every kind of lock.
#[rustfmt::skip]
pub(super) const LOCKS: &[Lock] = &[
    Lock {
        name: "mutex",
        declare: "static pthread_mutex_t l_$ = PTHREAD_MUTEX_INITIALIZER;",
        acquires: &["pthread_mutex_lock(&l_$);", "while (pthread_mutex_trylock(&l_$)) sched_yield();", "for (;;) { struct timespec t = soon(CLOCK_REALTIME); if (!pthread_mutex_timedlock(&l_$, &t)) break; }"],
        release: "pthread_mutex_unlock(&l_$);",
        ..LOCK
    },
    Lock {
        name: "mutex by a clock",
        knows_tsan: false,
        declare: "static pthread_mutex_t l_$ = PTHREAD_MUTEX_INITIALIZER;",
        acquires: &["for (;;) { struct timespec t = soon(CLOCK_MONOTONIC); if (!pthread_mutex_clocklock(&l_$, CLOCK_MONOTONIC, &t)) break; }"],
        release: "pthread_mutex_unlock(&l_$);",
        ..LOCK
    },
    Lock {
        name: "recursive mutex",
        declare: "static pthread_mutex_t l_$;",
        setup: "mutex_of(&l_$, PTHREAD_MUTEX_RECURSIVE, 0, 0);",
        acquires: &["pthread_mutex_lock(&l_$); pthread_mutex_lock(&l_$);", "while (pthread_mutex_trylock(&l_$)) sched_yield(); pthread_mutex_lock(&l_$);"],
        release: "pthread_mutex_unlock(&l_$); pthread_mutex_unlock(&l_$);",
        ..LOCK
    },
    Lock {
        name: "error-checking mutex",
        declare: "static pthread_mutex_t l_$;",
        setup: "mutex_of(&l_$, PTHREAD_MUTEX_ERRORCHECK, 0, 0);",
        acquires: &["pthread_mutex_lock(&l_$); if (pthread_mutex_lock(&l_$) != EDEADLK) abort();", "while (pthread_mutex_trylock(&l_$)) sched_yield();"],
        release: "pthread_mutex_unlock(&l_$);",
        ..LOCK
    },
    Lock {
        name: "robust mutex",
        declare: "static pthread_mutex_t l_$;",
        setup: "mutex_of(&l_$, PTHREAD_MUTEX_NORMAL, 1, 0);",
        acquires: &["if (pthread_mutex_lock(&l_$) == EOWNERDEAD) pthread_mutex_consistent(&l_$);"],
        release: "pthread_mutex_unlock(&l_$);",
        ..LOCK
    },
    Lock {
        name: "robust mutex whose owner died",
        declare: "static pthread_mutex_t l_$; static void *die_$(void *p) { pthread_mutex_lock(&l_$); return p; }",
        setup: "mutex_of(&l_$, PTHREAD_MUTEX_NORMAL, 1, 0); { pthread_t t; pthread_create(&t, 0, die_$, 0); pthread_join(t, 0); }",
        acquires: &["if (pthread_mutex_lock(&l_$) == EOWNERDEAD) pthread_mutex_consistent(&l_$);", "for (int r; (r = pthread_mutex_trylock(&l_$)); sched_yield()) if (r == EOWNERDEAD) { pthread_mutex_consistent(&l_$); break; }"],
        release: "pthread_mutex_unlock(&l_$);",
        knows_tsan: false,
        ..LOCK
    },
    Lock {
        name: "priority-inheriting mutex",
        declare: "static pthread_mutex_t l_$;",
        setup: "mutex_of(&l_$, PTHREAD_MUTEX_ADAPTIVE_NP, 0, 1);",
        acquires: &["pthread_mutex_lock(&l_$);"],
        release: "pthread_mutex_unlock(&l_$);",
        ..LOCK
    },
    Lock {
        name: "rwlock",
        declare: "static pthread_rwlock_t l_$ = PTHREAD_RWLOCK_INITIALIZER;",
        acquires: &["pthread_rwlock_wrlock(&l_$);", "while (pthread_rwlock_trywrlock(&l_$)) sched_yield();", "for (;;) { struct timespec t = soon(CLOCK_REALTIME); if (!pthread_rwlock_timedwrlock(&l_$, &t)) break; }"],
        release: "pthread_rwlock_unlock(&l_$);",
        shared: &["pthread_rwlock_rdlock(&l_$);", "while (pthread_rwlock_tryrdlock(&l_$)) sched_yield();", "for (;;) { struct timespec t = soon(CLOCK_REALTIME); if (!pthread_rwlock_timedrdlock(&l_$, &t)) break; }"],
        ..LOCK
    },
    Lock {
        name: "spinlock",
        declare: "static pthread_spinlock_t l_$;",
        setup: "pthread_spin_init(&l_$, 0);",
        acquires: &["pthread_spin_lock(&l_$);", "while (pthread_spin_trylock(&l_$)) sched_yield();"],
        release: "pthread_spin_unlock(&l_$);",
        ..LOCK
    },
    Lock {
        name: "semaphore as lock",
        declare: "static sem_t l_$;",
        setup: "sem_init(&l_$, 0, 1);",
        acquires: &["RETRY(sem_wait(&l_$));", "while (sem_trywait(&l_$)) sched_yield();"],
        release: "sem_post(&l_$);",
        ..LOCK
    },
    Lock {
        name: "monitor",
        declare: "static pthread_mutex_t l_$ = PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t c_$ = PTHREAD_COND_INITIALIZER; static int busy_$;",
        acquires: &["pthread_mutex_lock(&l_$); while (busy_$) pthread_cond_wait(&c_$, &l_$); busy_$ = 1; pthread_mutex_unlock(&l_$);"],
        release: "pthread_mutex_lock(&l_$); busy_$ = 0; pthread_cond_signal(&c_$); pthread_mutex_unlock(&l_$);",
        ..LOCK
    },
    Lock {
        name: "token in a pipe",
        declare: "static int l_$[2];",
        setup: "if (pipe(l_$) || write(l_$[1], \"x\", 1) != 1) abort();",
        acquires: &["{ char c; RETRY(read(l_$[0], &c, 1)); }", "{ char c; struct pollfd f = {l_$[0], POLLIN, 0}; RETRY(poll(&f, 1, -1)); RETRY(read(l_$[0], &c, 1)); }"],
        release: "RETRY(write(l_$[1], \"x\", 1));",
        ..LOCK
    },
    Lock {
        name: "token in an eventfd",
        declare: "static int l_$;",
        setup: "l_$ = eventfd(1, 0);",
        acquires: &["{ uint64_t one; RETRY(read(l_$, &one, 8)); }"],
        release: "{ uint64_t one = 1; RETRY(write(l_$, &one, 8)); }",
        ..LOCK
    },
    Lock {
        name: "test-and-set",
        declare: "static char l_$;",
        acquires: &["while (__atomic_test_and_set(&l_$, __ATOMIC_ACQUIRE)) {}", "while (__atomic_test_and_set(&l_$, __ATOMIC_ACQUIRE)) sched_yield();"],
        release: "__atomic_clear(&l_$, __ATOMIC_RELEASE);",
        ..LOCK
    },
    Lock {
        name: "test, then test-and-set",
        declare: "static int l_$;",
        acquires: &["do { while (__atomic_load_n(&l_$, __ATOMIC_RELAXED)) sched_yield(); } while (__atomic_exchange_n(&l_$, 1, __ATOMIC_ACQUIRE));"],
        release: "__atomic_store_n(&l_$, 0, __ATOMIC_RELEASE);",
        ..LOCK
    },
    Lock {
        name: "compare-exchange",
        declare: "static int l_$;",
        acquires: &["for (int v = 0; !__atomic_compare_exchange_n(&l_$, &v, 1, 1, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED); v = 0) sched_yield();"],
        release: "__atomic_store_n(&l_$, 0, __ATOMIC_RELEASE);",
        ..LOCK
    },
    Lock {
        name: "lock of old builtins",
        declare: "static int l_$;",
        acquires: &["while (__sync_lock_test_and_set(&l_$, 1)) sched_yield();", "while (!__sync_bool_compare_and_swap(&l_$, 0, 1)) sched_yield();"],
        release: "__sync_lock_release(&l_$);",
        ..LOCK
    },
    Lock {
        name: "ticket lock",
        declare: "static unsigned next_$, serving_$;",
        acquires: &["{ unsigned t = __atomic_fetch_add(&next_$, 1, __ATOMIC_RELAXED); while (__atomic_load_n(&serving_$, __ATOMIC_ACQUIRE) != t) sched_yield(); }"],
        release: "__atomic_store_n(&serving_$, serving_$ + 1, __ATOMIC_RELEASE);",
        ..LOCK
    },
    Lock {
        name: "MCS lock",
        declare: "struct mcs_$ { struct mcs_$ *next; int wait; }; static struct mcs_$ *tail_$;",
        acquires: &["struct mcs_$ n_$ = {0, 1}; { struct mcs_$ *p = __atomic_exchange_n(&tail_$, &n_$, __ATOMIC_ACQ_REL); if (p) { __atomic_store_n(&p->next, &n_$, __ATOMIC_RELEASE); while (__atomic_load_n(&n_$.wait, __ATOMIC_ACQUIRE)) sched_yield(); } }"],
        release: "{ struct mcs_$ *me = &n_$; if (!__atomic_compare_exchange_n(&tail_$, &me, (struct mcs_$ *)0, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) { while (!__atomic_load_n(&n_$.next, __ATOMIC_ACQUIRE)) sched_yield(); __atomic_store_n(&n_$.next->wait, 0, __ATOMIC_RELEASE); } }",
        ..LOCK
    },
    Lock {
        name: "CLH lock",
        declare: "struct clh_$ { int held; }; static struct clh_$ first_$, *tail_$ = &first_$;",
        acquires: &["struct clh_$ *n_$ = (struct clh_$ *)malloc(sizeof *n_$), *p_$; n_$->held = 1; p_$ = __atomic_exchange_n(&tail_$, n_$, __ATOMIC_ACQ_REL); while (__atomic_load_n(&p_$->held, __ATOMIC_ACQUIRE)) sched_yield(); if (p_$ != &first_$) free(p_$);"],
        release: "__atomic_store_n(&n_$->held, 0, __ATOMIC_RELEASE);",
        ..LOCK
    },
    Lock {
        name: "futex lock",
        declare: "static int l_$;",
        acquires: &["{ int v = 0; if (!__atomic_compare_exchange_n(&l_$, &v, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) while (__atomic_exchange_n(&l_$, 2, __ATOMIC_ACQUIRE)) syscall(SYS_futex, &l_$, FUTEX_WAIT_PRIVATE, 2, 0, 0, 0); }"],
        release: "if (__atomic_exchange_n(&l_$, 0, __ATOMIC_RELEASE) == 2) syscall(SYS_futex, &l_$, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);",
        ..LOCK
    },
    Lock {
        name: "readers and writers in a word",
        declare: "static int l_$;",
        acquires: &["for (int v = 0; !__atomic_compare_exchange_n(&l_$, &v, -1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED); v = 0) sched_yield();"],
        release: "__atomic_store_n(&l_$, 0, __ATOMIC_RELEASE);",
        shared: &["for (int v = __atomic_load_n(&l_$, __ATOMIC_RELAXED); ; ) { if (v < 0) { sched_yield(); v = __atomic_load_n(&l_$, __ATOMIC_RELAXED); } else if (__atomic_compare_exchange_n(&l_$, &v, v + 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) break; }"],
        release_shared: "__atomic_fetch_sub(&l_$, 1, __ATOMIC_RELEASE);",
        ..LOCK
    },
    Lock {
        name: "bit of a word",
        declare: "static unsigned l_$ = 4;",
        acquires: &["while (__atomic_fetch_or(&l_$, 1u, __ATOMIC_ACQUIRE) & 1) sched_yield();"],
        release: "__atomic_fetch_and(&l_$, ~1u, __ATOMIC_RELEASE);",
        ..LOCK
    },
    Lock {
        name: "flock",
        knows_tsan: false,
        declare: "static char path_$[64]; static __thread int l_$;",
        setup: "temporary(path_$);",
        acquires: &["if (!l_$) l_$ = open(path_$, O_RDWR); RETRY(flock(l_$, LOCK_EX));", "if (!l_$) l_$ = open(path_$, O_RDWR); while (flock(l_$, LOCK_EX | LOCK_NB)) sched_yield();"],
        release: "flock(l_$, LOCK_UN);",
        shared: &["if (!l_$) l_$ = open(path_$, O_RDWR); RETRY(flock(l_$, LOCK_SH));"],
        teardown: "unlink(path_$);",
        ..LOCK
    },
    Lock {
        name: "fcntl lock of an open file",
        knows_tsan: false,
        declare: "static char path_$[64]; static __thread int l_$;",
        setup: "temporary(path_$);",
        acquires: &["if (!l_$) l_$ = open(path_$, O_RDWR); { struct flock v; memset(&v, 0, sizeof v); v.l_type = F_WRLCK; v.l_len = 1; RETRY(fcntl(l_$, F_OFD_SETLKW, &v)); }", "if (!l_$) l_$ = open(path_$, O_RDWR); { struct flock v; memset(&v, 0, sizeof v); v.l_type = F_WRLCK; v.l_len = 1; while (fcntl(l_$, F_OFD_SETLK, &v)) sched_yield(); }"],
        release: "{ struct flock v; memset(&v, 0, sizeof v); v.l_type = F_UNLCK; v.l_len = 1; fcntl(l_$, F_OFD_SETLK, &v); }",
        shared: &["if (!l_$) l_$ = open(path_$, O_RDWR); { struct flock v; memset(&v, 0, sizeof v); v.l_type = F_RDLCK; v.l_len = 1; RETRY(fcntl(l_$, F_OFD_SETLKW, &v)); }"],
        teardown: "unlink(path_$);",
        ..LOCK
    },
    Lock {
        name: "locked stream",
        knows_tsan: false,
        declare: "static FILE *l_$;",
        setup: "l_$ = fopen(\"/dev/null\", \"w\");",
        acquires: &["flockfile(l_$);", "while (ftrylockfile(l_$)) sched_yield();"],
        release: "funlockfile(l_$);",
        ..LOCK
    },
    Lock {
        name: "annotated assembler as lock",
        declare: "static int l_$;",
        acquires: &["for (int v = 1; v; ) { __asm__ volatile(\"xchgl %0, %1\" : \"+r\"(v), \"+m\"(l_$) : : \"memory\"); if (v) sched_yield(); } ACQUIRE(&l_$);"],
        release: "RELEASE(&l_$); __asm__ volatile(\"movl %1, %0\" : \"=m\"(l_$) : \"r\"(0) : \"memory\");",
        ..LOCK
    },
    Lock {
        name: "mtx_t",
        needs: C,
        knows_tsan: false,
        declare: "static mtx_t l_$;",
        setup: "mtx_init(&l_$, mtx_timed);",
        acquires: &["mtx_lock(&l_$);", "while (mtx_trylock(&l_$) != thrd_success) thrd_yield();", "for (;;) { struct timespec t = soon(CLOCK_REALTIME); if (mtx_timedlock(&l_$, &t) == thrd_success) break; }"],
        release: "mtx_unlock(&l_$);",
        ..LOCK
    },
    Lock {
        name: "recursive mtx_t",
        needs: C,
        knows_tsan: false,
        declare: "static mtx_t l_$;",
        setup: "mtx_init(&l_$, mtx_plain | mtx_recursive);",
        acquires: &["mtx_lock(&l_$); mtx_lock(&l_$);"],
        release: "mtx_unlock(&l_$); mtx_unlock(&l_$);",
        ..LOCK
    },
    Lock {
        name: "atomic flag as lock",
        needs: C,
        declare: "static atomic_flag l_$ = ATOMIC_FLAG_INIT;",
        acquires: &["while (atomic_flag_test_and_set_explicit(&l_$, memory_order_acquire)) {}"],
        release: "atomic_flag_clear_explicit(&l_$, memory_order_release);",
        ..LOCK
    },
    Lock {
        name: "std::mutex",
        needs: Cpp,
        declare: "static std::mutex l_$;",
        acquires: &["std::unique_lock<std::mutex> g_$(l_$);", "std::unique_lock<std::mutex> g_$(l_$, std::defer_lock); while (!g_$.try_lock()) std::this_thread::yield();"],
        release: "g_$.unlock();",
        ..LOCK
    },
    Lock {
        name: "std::timed_mutex",
        needs: Cpp,
        declare: "static std::timed_mutex l_$;",
        acquires: &["l_$.lock();", "while (!l_$.try_lock_for(std::chrono::milliseconds(2))) {}"],
        release: "l_$.unlock();",
        ..LOCK
    },
    Lock {
        name: "std::recursive_mutex",
        needs: Cpp,
        declare: "static std::recursive_mutex l_$;",
        acquires: &["l_$.lock(); l_$.lock();"],
        release: "l_$.unlock(); l_$.unlock();",
        ..LOCK
    },
    Lock {
        name: "std::shared_mutex",
        needs: Cpp,
        declare: "static std::shared_mutex l_$;",
        acquires: &["l_$.lock();", "while (!l_$.try_lock()) std::this_thread::yield();"],
        release: "l_$.unlock();",
        shared: &["l_$.lock_shared();", "while (!l_$.try_lock_shared()) std::this_thread::yield();"],
        release_shared: "l_$.unlock_shared();",
        ..LOCK
    },
    Lock {
        name: "std::scoped_lock of two",
        needs: Cpp,
        declare: "static std::mutex l_$, k_$;",
        acquires: &["auto *g_$ = new std::scoped_lock<std::mutex, std::mutex>(l_$, k_$);", "auto *g_$ = new std::scoped_lock<std::mutex, std::mutex>(k_$, l_$);"],
        release: "delete g_$;",
        ..LOCK
    },
    Lock {
        name: "std::binary_semaphore",
        needs: Cpp,
        declare: "static std::binary_semaphore l_${1};",
        acquires: &["l_$.acquire();", "while (!l_$.try_acquire()) std::this_thread::yield();"],
        release: "l_$.release();",
        ..LOCK
    },
    Lock {
        name: "std::atomic_flag as lock",
        needs: Cpp,
        declare: "static std::atomic_flag l_$;",
        acquires: &["while (l_$.test_and_set(std::memory_order_acquire)) l_$.wait(true, std::memory_order_relaxed);"],
        release: "l_$.clear(std::memory_order_release); l_$.notify_one();",
        ..LOCK
    },
    Lock {
        name: "GMutex",
        needs: Glib,
        knows_tsan: false,
        declare: "static GMutex l_$;",
        acquires: &["g_mutex_lock(&l_$);", "while (!g_mutex_trylock(&l_$)) g_thread_yield();"],
        release: "g_mutex_unlock(&l_$);",
        ..LOCK
    },
    Lock {
        name: "GRecMutex",
        needs: Glib,
        knows_tsan: false,
        declare: "static GRecMutex l_$;",
        acquires: &["g_rec_mutex_lock(&l_$); g_rec_mutex_lock(&l_$);"],
        release: "g_rec_mutex_unlock(&l_$); g_rec_mutex_unlock(&l_$);",
        ..LOCK
    },
    Lock {
        name: "GRWLock",
        needs: Glib,
        knows_tsan: false,
        declare: "static GRWLock l_$;",
        acquires: &["g_rw_lock_writer_lock(&l_$);", "while (!g_rw_lock_writer_trylock(&l_$)) g_thread_yield();"],
        release: "g_rw_lock_writer_unlock(&l_$);",
        shared: &["g_rw_lock_reader_lock(&l_$);"],
        release_shared: "g_rw_lock_reader_unlock(&l_$);",
        ..LOCK
    },
    Lock {
        name: "GLib bit lock",
        needs: Glib,
        knows_tsan: false,
        declare: "static gint l_$;",
        acquires: &["g_bit_lock(&l_$, 3);", "while (!g_bit_trylock(&l_$, 3)) g_thread_yield();"],
        release: "g_bit_unlock(&l_$, 3);",
        ..LOCK
    },
    Lock {
        name: "absl::Mutex",
        needs: Abseil,
        knows_tsan: false,
        declare: "static absl::Mutex l_$;",
        acquires: &["l_$.Lock();", "while (!l_$.TryLock()) sched_yield();"],
        release: "l_$.Unlock();",
        shared: &["l_$.ReaderLock();"],
        release_shared: "l_$.ReaderUnlock();",
        ..LOCK
    },
    Lock {
        name: "absl::MutexLock",
        needs: Abseil,
        knows_tsan: false,
        declare: "static absl::Mutex l_$;",
        acquires: &["{ absl::MutexLock g_$(&l_$);"],
        release: "}",
        ..LOCK
    },
    Lock {
        name: "tbb::spin_mutex",
        needs: Tbb,
        knows_tsan: false,
        declare: "static tbb::spin_mutex l_$;",
        acquires: &["tbb::spin_mutex::scoped_lock g_$(l_$);"],
        release: "g_$.release();",
        ..LOCK
    },
    Lock {
        name: "tbb::queuing_mutex",
        needs: Tbb,
        knows_tsan: false,
        declare: "static tbb::queuing_mutex l_$;",
        acquires: &["tbb::queuing_mutex::scoped_lock g_$(l_$);"],
        release: "g_$.release();",
        ..LOCK
    },
    Lock {
        name: "tbb::spin_rw_mutex",
        needs: Tbb,
        knows_tsan: false,
        declare: "static tbb::spin_rw_mutex l_$;",
        acquires: &["tbb::spin_rw_mutex::scoped_lock g_$(l_$, true);"],
        release: "g_$.release();",
        shared: &["tbb::spin_rw_mutex::scoped_lock g_$(l_$, false);"],
        ..LOCK
    },
    Lock {
        name: "omp_lock_t",
        needs: OpenMp,
        knows_tsan: false,
        declare: "static omp_lock_t l_$;",
        setup: "omp_init_lock(&l_$);",
        acquires: &["omp_set_lock(&l_$);", "while (!omp_test_lock(&l_$)) sched_yield();"],
        release: "omp_unset_lock(&l_$);",
        ..LOCK
    },
    Lock {
        name: "lock of a library",
        needs: Plain,
        knows_tsan: false,
        declare: "static int l_$;",
        acquires: &["plain_lock(&l_$);", "while (!plain_trylock(&l_$)) sched_yield();"],
        release: "plain_unlock(&l_$);",
        ..LOCK
    },
];
