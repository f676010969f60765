//! Structures: whoever runs one has a cell for itself; somebody else accesses it in between.
//!
//! In the code, `$` is the instance's number and `TOUCH` accesses the cell. How often it is reached
//! is the same in every schedule.

use super::Needs::{C, Cpp, Glib, OpenMp, Plain, Tbb};
use super::{STRUCTURE, Structure};

/// Every kind of structure.
#[rustfmt::skip]
pub(super) const STRUCTURES: &[Structure] = &[
    Structure {
        name: "create and join",
        declare: "static void *child_$(void *p) { TOUCH return p; }",
        run: "{ pthread_t t; pthread_create(&t, 0, child_$, 0); pthread_join(t, 0); }",
        ..STRUCTURE
    },
    Structure {
        name: "grandchild that joins its sister",
        declare: "static pthread_t t_$; static void *child_$(void *p) { TOUCH return p; } static void *second_$(void *p) { pthread_join(t_$, 0); TOUCH return p; }",
        run: "{ pthread_t u; pthread_create(&t_$, 0, child_$, 0); pthread_create(&u, 0, second_$, 0); pthread_join(u, 0); }",
        ..STRUCTURE
    },
    Structure {
        name: "join tried and timed",
        knows_tsan: false,
        declare: "static void *child_$(void *p) { TOUCH return p; }",
        run: "{ pthread_t t, u; pthread_create(&t, 0, child_$, 0); while (pthread_tryjoin_np(t, 0)) sched_yield(); pthread_create(&u, 0, child_$, 0); for (;;) { struct timespec w = soon(CLOCK_REALTIME); if (!pthread_timedjoin_np(u, 0, &w)) break; } }",
        ..STRUCTURE
    },
    Structure {
        name: "detached thread and a semaphore",
        declare: "static sem_t s_$; static void *child_$(void *p) { TOUCH sem_post(&s_$); return p; }",
        setup: "sem_init(&s_$, 0, 0);",
        run: "{ pthread_t t; pthread_attr_t a; pthread_attr_init(&a); pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED); pthread_create(&t, &a, child_$, 0); RETRY(sem_wait(&s_$)); }",
        ..STRUCTURE
    },
    Structure {
        name: "pthread_exit",
        declare: "static void *child_$(void *p) { TOUCH pthread_exit(p); }",
        run: "{ pthread_t t; void *r; pthread_create(&t, 0, child_$, (void *)5); pthread_join(t, &r); keep((long)r); }",
        ..STRUCTURE
    },
    Structure {
        name: "destructor of a key",
        declare: "static pthread_key_t k_$; static void last_$(void *p) { TOUCH free(p); } static void *child_$(void *p) { pthread_setspecific(k_$, malloc(8)); return p; }",
        setup: "pthread_key_create(&k_$, last_$);",
        run: "{ pthread_t t; pthread_create(&t, 0, child_$, 0); pthread_join(t, 0); }",
        ..STRUCTURE
    },
    Structure {
        name: "cancelled thread that cleans up",
        knows_tsan: false,
        declare: "static sem_t s_$; static void last_$(void *p) { (void)p; TOUCH } static void *child_$(void *p) { pthread_cleanup_push(last_$, p); for (;;) RETRY(sem_wait(&s_$)); pthread_cleanup_pop(0); return p; }",
        setup: "sem_init(&s_$, 0, 0);",
        run: "{ pthread_t t; TOUCH pthread_create(&t, 0, child_$, 0); sched_yield(); pthread_cancel(t); pthread_join(t, 0); }",
        ..STRUCTURE
    },
    Structure {
        name: "cancelled wait on a condition",
        knows_tsan: false,
        declare: "static pthread_mutex_t m_$ = PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t c_$ = PTHREAD_COND_INITIALIZER; static int started_$; static void last_$(void *p) { TOUCH pthread_mutex_unlock((pthread_mutex_t *)p); } static void *child_$(void *p) { pthread_mutex_lock(&m_$); pthread_cleanup_push(last_$, (void *)&m_$); started_$ = 1; for (;;) pthread_cond_wait(&c_$, &m_$); pthread_cleanup_pop(1); return p; }",
        run: "{ pthread_t t; pthread_create(&t, 0, child_$, 0); for (int s = 0; !s; sched_yield()) { pthread_mutex_lock(&m_$); s = started_$; pthread_mutex_unlock(&m_$); } pthread_cancel(t); pthread_join(t, 0); }",
        ..STRUCTURE
    },
    Structure {
        name: "pthread_once",
        declare: "static pthread_once_t o_$ = PTHREAD_ONCE_INIT; static int value_$; static void first_$(void) { TOUCH value_$ = 9; } static void *child_$(void *p) { pthread_once(&o_$, first_$); keep(value_$); return p; }",
        run: "{ pthread_t t, u; pthread_create(&t, 0, child_$, 0); pthread_create(&u, 0, child_$, 0); pthread_once(&o_$, first_$); keep(value_$); pthread_join(t, 0); pthread_join(u, 0); }",
        ..STRUCTURE
    },
    Structure {
        name: "checked twice under a lock",
        declare: "static pthread_mutex_t m_$ = PTHREAD_MUTEX_INITIALIZER; static int is_$, value_$; static void *child_$(void *p) { if (!__atomic_load_n(&is_$, __ATOMIC_ACQUIRE)) { pthread_mutex_lock(&m_$); if (!is_$) { TOUCH value_$ = 5; __atomic_store_n(&is_$, 1, __ATOMIC_RELEASE); } pthread_mutex_unlock(&m_$); } keep(value_$); return p; }",
        run: "{ pthread_t t, u; pthread_create(&t, 0, child_$, 0); pthread_create(&u, 0, child_$, 0); child_$(0); pthread_join(t, 0); pthread_join(u, 0); }",
        ..STRUCTURE
    },
    Structure {
        name: "lock that was found taken",
        declare: "static pthread_mutex_t m_$ = PTHREAD_MUTEX_INITIALIZER; static void *child_$(void *p) { pthread_mutex_lock(&m_$); usleep(200); TOUCH pthread_mutex_unlock(&m_$); return p; }",
        run: "{ pthread_t t; int n = 0; pthread_create(&t, 0, child_$, 0); usleep(50); for (; pthread_mutex_trylock(&m_$); n++) sched_yield(); pthread_mutex_unlock(&m_$); if (n) { TOUCH } pthread_join(t, 0); if (!n) { TOUCH } }",
        ..STRUCTURE
    },
    Structure {
        name: "shared lock that was found taken",
        declare: "static pthread_rwlock_t m_$ = PTHREAD_RWLOCK_INITIALIZER; static void *child_$(void *p) { pthread_rwlock_rdlock(&m_$); pthread_rwlock_rdlock(&m_$); usleep(200); pthread_rwlock_unlock(&m_$); TOUCH pthread_rwlock_unlock(&m_$); return p; }",
        run: "{ pthread_t t; int n = 0; pthread_create(&t, 0, child_$, 0); usleep(50); for (; pthread_rwlock_trywrlock(&m_$); n++) sched_yield(); pthread_rwlock_unlock(&m_$); if (n) { TOUCH } pthread_join(t, 0); if (!n) { TOUCH } }",
        ..STRUCTURE
    },
    Structure {
        name: "word that was found taken",
        declare: "static int m_$; static void *child_$(void *p) { while (__atomic_exchange_n(&m_$, 1, __ATOMIC_ACQUIRE)) sched_yield(); usleep(200); TOUCH __atomic_store_n(&m_$, 0, __ATOMIC_RELEASE); return p; }",
        run: "{ pthread_t t; int n = 0; pthread_create(&t, 0, child_$, 0); usleep(50); for (; __atomic_exchange_n(&m_$, 1, __ATOMIC_ACQUIRE); n++) sched_yield(); __atomic_store_n(&m_$, 0, __ATOMIC_RELEASE); if (n) { TOUCH } pthread_join(t, 0); if (!n) { TOUCH } }",
        ..STRUCTURE
    },
    Structure {
        name: "memory that another thread gets",
        declare: "static void *child_$(void *p) { for (int i = 0; i < 20; i++) { long *v = (long *)malloc(40); memset(v, i, 40); v[1] += i; free(v); } return p; }",
        run: "{ pthread_t t, u; TOUCH long *v = (long *)malloc(40); v[0] = 3; free(v); pthread_create(&t, 0, child_$, 0); pthread_create(&u, 0, child_$, 0); child_$(0); pthread_join(t, 0); pthread_join(u, 0); }",
        ..STRUCTURE
    },
    Structure {
        name: "memory that another thread frees",
        declare: "static void *child_$(void *p) { long *v = (long *)p; v[2] += v[1]; v = (long *)realloc(v, 4000); v[400] = 1; free(v); return 0; }",
        run: "for (int i = 0; i < 3; i++) { pthread_t t; long *v = (long *)calloc(5, sizeof *v); v[1] = i; pthread_create(&t, 0, child_$, v); long *w = (long *)malloc(40); w[1] = 2; keep(w[1]); free(w); pthread_join(t, 0); } TOUCH",
        ..STRUCTURE
    },
    Structure {
        name: "mapped memory that another thread gets",
        declare: "static void *child_$(void *p) { for (int i = 0; i < 4; i++) { char *v = (char *)mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); memset(v, 1, 8192); v[5]++; munmap(v, 8192); } return p; }",
        run: "{ pthread_t t, u; pthread_create(&t, 0, child_$, 0); pthread_create(&u, 0, child_$, 0); pthread_join(t, 0); pthread_join(u, 0); TOUCH }",
        ..STRUCTURE
    },
    Structure {
        name: "stack of an ended thread",
        declare: "static void *child_$(void *p) { long v[64]; memset(v, 0, sizeof v); *(volatile long *)(v + 5) += 1; keep((long)v); return p; } static void *parent_$(void *p) { long v[64]; pthread_t t; memset(v, 1, sizeof v); keep((long)v); pthread_create(&t, 0, child_$, 0); pthread_join(t, 0); return p; }",
        run: "for (int i = 0; i < 3; i++) { pthread_t t, u; pthread_create(&t, 0, parent_$, 0); pthread_create(&u, 0, child_$, 0); pthread_join(t, 0); pthread_join(u, 0); } TOUCH",
        ..STRUCTURE
    },
    Structure {
        name: "variable on a parent's stack",
        declare: "struct arg_$ { int a, b; char text[24]; }; static void *child_$(void *p) { struct arg_$ *v = (struct arg_$ *)p; v->b = v->a + 1; snprintf(v->text, sizeof v->text, \"%d\", v->b); TOUCH return p; }",
        run: "{ pthread_t t; struct arg_$ v = {1, 2, \"\"}; pthread_create(&t, 0, child_$, &v); pthread_join(t, 0); keep(v.b + v.text[0]); }",
        ..STRUCTURE
    },
    Structure {
        name: "pthread_atfork and a child process",
        knows_tsan: false,
        declare: "static __thread int forks_$; static void before_$(void) { if (forks_$) { TOUCH } }",
        setup: "pthread_atfork(before_$, 0, 0);",
        run: "{ fflush(0); forks_$ = 1; pid_t p = fork(); if (!p) _exit(3); forks_$ = 0; int s; RETRY(waitpid(p, &s, 0)); keep(s); }",
        ..STRUCTURE
    },
    Structure {
        name: "child process and pipes",
        knows_tsan: false,
        run: "{ int a[2], b[2]; if (pipe(a) || pipe(b)) abort(); TOUCH fflush(0); pid_t p = fork(); if (!p) { char c; RETRY(read(a[0], &c, 1)); RETRY(write(b[1], &c, 1)); _exit(0); } char c = 1; RETRY(write(a[1], &c, 1)); RETRY(read(b[0], &c, 1)); TOUCH int s; RETRY(waitpid(p, &s, 0)); TOUCH }",
        ..STRUCTURE
    },
    Structure {
        name: "child process between two threads",
        knows_tsan: false,
        declare: "static int a_$[2], b_$[2]; static void *child_$(void *p) { char c; RETRY(read(b_$[0], &c, 1)); TOUCH return p; }",
        run: "{ if (pipe(a_$) || pipe(b_$)) abort(); pthread_t t; fflush(0); pid_t p = fork(); if (!p) { char c; RETRY(read(a_$[0], &c, 1)); RETRY(write(b_$[1], &c, 1)); _exit(0); } pthread_create(&t, 0, child_$, 0); TOUCH char c = 1; RETRY(write(a_$[1], &c, 1)); pthread_join(t, 0); int s; RETRY(waitpid(p, &s, 0)); }",
        ..STRUCTURE
    },
    Structure {
        name: "lockf with a child process",
        knows_tsan: false,
        declare: "static char path_$[64];",
        setup: "temporary(path_$);",
        run: "{ TOUCH fflush(0); pid_t p = fork(); int f = open(path_$, O_RDWR); RETRY(lockf(f, F_LOCK, 0)); RETRY(lockf(f, F_ULOCK, 0)); if (!p) _exit(0); int s; RETRY(waitpid(p, &s, 0)); struct flock v; memset(&v, 0, sizeof v); v.l_type = F_WRLCK; RETRY(fcntl(f, F_SETLKW, &v)); TOUCH v.l_type = F_UNLCK; fcntl(f, F_SETLK, &v); }",
        teardown: "unlink(path_$);",
        ..STRUCTURE
    },
    Structure {
        name: "program that is waited for",
        knows_tsan: false,
        run: "{ TOUCH FILE *f = popen(\"echo 5\", \"r\"); char line[16]; while (!fgets(line, sizeof line, f)) clearerr(f); pclose(f); keep(atoi(line)); TOUCH }",
        ..STRUCTURE
    },
    Structure {
        name: "raised signal",
        knows_tsan: false,
        declare: "static void on_$(int s) { if (s != SIGNAL($)) abort(); TOUCH }",
        // The C library declares that `raise` runs no code of the program, so gcc keeps what the
        // handler changes in a register across it.
        run: "handle(SIGNAL($), on_$); TOUCH __asm__ volatile(\"\" ::: \"memory\"); raise(SIGNAL($)); __asm__ volatile(\"\" ::: \"memory\"); TOUCH",
        ..STRUCTURE
    },
    Structure {
        name: "handler installed after the write",
        knows_tsan: false,
        declare: "static sem_t s_$; static void on_$(int s) { if (s != SIGNAL($)) abort(); TOUCH int e = errno; sem_post(&s_$); errno = e; }",
        setup: "sem_init(&s_$, 0, 0);",
        run: "TOUCH handle(SIGNAL($), on_$); kill(getpid(), SIGNAL($)); RETRY(sem_wait(&s_$)); TOUCH",
        is_in_handler: true,
        ..STRUCTURE
    },
    Structure {
        name: "timer that signals",
        knows_tsan: false,
        declare: "static sem_t s_$; static void on_$(int s) { if (s != SIGNAL($)) abort(); TOUCH int e = errno; sem_post(&s_$); errno = e; }",
        setup: "sem_init(&s_$, 0, 0);",
        run: "handle(SIGNAL($), on_$); TOUCH { timer_t t; struct sigevent v; memset(&v, 0, sizeof v); v.sigev_notify = SIGEV_SIGNAL; v.sigev_signo = SIGNAL($); timer_create(CLOCK_MONOTONIC, &v, &t); struct itimerspec w = {{0, 0}, {0, 1000000}}; timer_settime(t, 0, &w, 0); RETRY(sem_wait(&s_$)); timer_delete(t); } TOUCH",
        is_in_handler: true,
        ..STRUCTURE
    },
    Structure {
        name: "timerfd",
        knows_tsan: false,
        declare: "static int e_$; static void *child_$(void *p) { uint64_t n; RETRY(read(e_$, &n, 8)); TOUCH return p; }",
        setup: "e_$ = timerfd_create(CLOCK_MONOTONIC, 0);",
        run: "{ pthread_t t; pthread_create(&t, 0, child_$, 0); TOUCH struct itimerspec w = {{0, 0}, {0, 1000000}}; timerfd_settime(e_$, 0, &w, 0); pthread_join(t, 0); }",
        ..STRUCTURE
    },
    Structure {
        name: "ignored accesses",
        declare: "static int seen_$; static void *child_$(void *p) { IGNORE_BEGIN(); seen_$ += 1; IGNORE_END(); return p; }",
        run: "{ pthread_t t; pthread_create(&t, 0, child_$, 0); child_$(0); TOUCH pthread_join(t, 0); }",
        ..STRUCTURE
    },
    Structure {
        name: "benign race",
        declare: "static int seen_$; static void *child_$(void *p) { seen_$ = 1; return p; }",
        setup: "BENIGN(&seen_$, sizeof seen_$);",
        run: "{ pthread_t t; pthread_create(&t, 0, child_$, 0); child_$(0); TOUCH pthread_join(t, 0); }",
        ..STRUCTURE
    },
    Structure {
        name: "several jobs for a pool",
        declare: "static pthread_mutex_t m_$ = PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t c_$ = PTHREAD_COND_INITIALIZER; static int jobs_$, done_$, end_$; static long slots_$[8]; static void *child_$(void *p) { pthread_mutex_lock(&m_$); while (!end_$ || jobs_$) { if (!jobs_$) { pthread_cond_wait(&c_$, &m_$); continue; } int job = --jobs_$; pthread_mutex_unlock(&m_$); slots_$[job] += job; pthread_mutex_lock(&m_$); if (++done_$ == 8) pthread_cond_broadcast(&c_$); } pthread_mutex_unlock(&m_$); return p; }",
        run: "{ pthread_t t, u; end_$ = done_$ = 0; pthread_create(&t, 0, child_$, 0); pthread_create(&u, 0, child_$, 0); TOUCH pthread_mutex_lock(&m_$); jobs_$ = 8; pthread_cond_broadcast(&c_$); while (done_$ < 8) pthread_cond_wait(&c_$, &m_$); end_$ = 1; pthread_cond_broadcast(&c_$); pthread_mutex_unlock(&m_$); for (int i = 0; i < 8; i++) keep(slots_$[i]); pthread_join(t, 0); pthread_join(u, 0); TOUCH }",
        ..STRUCTURE
    },
    Structure {
        name: "barriers between phases",
        declare: "static pthread_barrier_t b_$; static long slots_$[4]; static void *child_$(void *p) { long i = (long)p; for (int r = 0; r < 3; r++) { slots_$[i] = i + r; if (pthread_barrier_wait(&b_$) == PTHREAD_BARRIER_SERIAL_THREAD) { TOUCH } keep(slots_$[(i + 1) % 3]); pthread_barrier_wait(&b_$); } return 0; }",
        setup: "pthread_barrier_init(&b_$, 0, 3);",
        run: "{ pthread_t t, u; pthread_create(&t, 0, child_$, (void *)1); pthread_create(&u, 0, child_$, (void *)2); child_$(0); pthread_join(t, 0); pthread_join(u, 0); }",
        ..STRUCTURE
    },
    Structure {
        name: "counted references",
        declare: "struct object_$ { int count; long value[3]; }; static void *child_$(void *p) { struct object_$ *v = (struct object_$ *)p; keep(v->value[1]); if (__atomic_sub_fetch(&v->count, 1, __ATOMIC_ACQ_REL) == 0) { v->value[1] = 0; TOUCH free(v); } return 0; }",
        run: "{ pthread_t t, u; struct object_$ *v = (struct object_$ *)calloc(1, sizeof *v); v->count = 3; v->value[1] = 8; pthread_create(&t, 0, child_$, v); pthread_create(&u, 0, child_$, v); child_$(v); pthread_join(t, 0); pthread_join(u, 0); }",
        ..STRUCTURE
    },
    Structure {
        name: "C11 threads",
        needs: C,
        knows_tsan: false,
        declare: "static tss_t k_$; static once_flag o_$ = ONCE_FLAG_INIT; static int value_$; static void first_$(void) { value_$ = 4; } static void last_$(void *p) { TOUCH free(p); } static int child_$(void *p) { (void)p; call_once(&o_$, first_$); keep(value_$); tss_set(k_$, malloc(8)); return 4; }",
        setup: "tss_create(&k_$, last_$);",
        run: "{ thrd_t t; int r; thrd_create(&t, child_$, 0); call_once(&o_$, first_$); keep(value_$); thrd_join(t, &r); keep(r); TOUCH }",
        ..STRUCTURE
    },
    Structure {
        name: "std::thread",
        needs: Cpp,
        run: "{ std::thread t([] { TOUCH }); t.join(); TOUCH }",
        ..STRUCTURE
    },
    Structure {
        name: "std::jthread",
        needs: Cpp,
        run: "{ std::jthread t([](std::stop_token stop) { while (!stop.stop_requested()) std::this_thread::yield(); TOUCH }); TOUCH t.request_stop(); t.join(); TOUCH }",
        ..STRUCTURE
    },
    Structure {
        name: "std::async",
        needs: Cpp,
        run: "{ auto v = std::async(std::launch::async, [] { TOUCH return std::vector<int>(3, 4); }); keep((long)v.get().size()); TOUCH }",
        ..STRUCTURE
    },
    Structure {
        name: "std::packaged_task",
        needs: Cpp,
        run: "{ std::packaged_task<int()> task([] { TOUCH return 3; }); auto v = task.get_future(); std::thread t(std::move(task)); keep(v.get()); TOUCH t.join(); }",
        ..STRUCTURE
    },
    Structure {
        name: "std::call_once and local statics",
        needs: Cpp,
        declare: "static std::once_flag o_$; static long value_$; static void child_$() { std::call_once(o_$, [] { TOUCH value_$ = 3; }); keep(value_$); static const std::string text = std::to_string(1234567890123) + \" and more than fits\"; keep((long)text.size()); }",
        run: "{ std::thread t(child_$), u(child_$); child_$(); t.join(); u.join(); TOUCH }",
        ..STRUCTURE
    },
    Structure {
        name: "std::shared_ptr between threads",
        needs: Cpp,
        run: "{ auto v = std::make_shared<std::vector<long>>(4, 1); std::thread t([v]() mutable { keep((*v)[1]); v.reset(); }), u([v]() mutable { keep((*v)[2]); v.reset(); }); v.reset(); t.join(); u.join(); TOUCH }",
        ..STRUCTURE
    },
    Structure {
        name: "std::latch and std::barrier of three",
        needs: Cpp,
        run: "{ std::latch begin{1}, end{2}; std::barrier<> phase{2}; static long slots_$[2]; auto work = [&](int i) { begin.wait(); slots_$[i]++; phase.arrive_and_wait(); keep(slots_$[1 - i]); end.count_down(); }; std::thread t(work, 0), u(work, 1); TOUCH begin.count_down(); end.wait(); keep(slots_$[0]); TOUCH t.join(); u.join(); }",
        ..STRUCTURE
    },
    Structure {
        name: "GThread and g_once",
        needs: Glib,
        knows_tsan: false,
        declare: "static GOnce o_$ = G_ONCE_INIT; static gpointer first_$(gpointer p) { (void)p; TOUCH return g_strdup(\"once\"); } static gpointer child_$(gpointer p) { char *v = (char *)g_once(&o_$, first_$, 0); keep(v[1]); return p; }",
        run: "{ GThread *t = g_thread_new(\"t\", child_$, 0), *u = g_thread_new(\"u\", child_$, 0); child_$(0); g_thread_join(t); g_thread_join(u); TOUCH }",
        ..STRUCTURE
    },
    Structure {
        name: "g_once_init_enter",
        needs: Glib,
        knows_tsan: false,
        declare: "static gsize o_$; static long value_$; static gpointer child_$(gpointer p) { if (g_once_init_enter(&o_$)) { TOUCH value_$ = 6; g_once_init_leave(&o_$, 1); } keep(value_$); return p; }",
        run: "{ GThread *t = g_thread_new(\"t\", child_$, 0), *u = g_thread_new(\"u\", child_$, 0); child_$(0); g_thread_join(t); g_thread_join(u); }",
        ..STRUCTURE
    },
    Structure {
        name: "GThreadPool",
        needs: Glib,
        knows_tsan: false,
        declare: "static long slots_$[8]; static void child_$(gpointer data, gpointer user) { (void)user; long *v = (long *)data; *v += 3; }",
        run: "{ TOUCH for (int i = 0; i < 6; i++) slots_$[i] = i; GThreadPool *v = g_thread_pool_new(child_$, 0, 2, FALSE, 0); for (int i = 0; i < 6; i++) g_thread_pool_push(v, &slots_$[i], 0); g_thread_pool_free(v, FALSE, TRUE); for (int i = 0; i < 6; i++) keep(slots_$[i]); TOUCH }",
        ..STRUCTURE
    },
    Structure {
        name: "GMainLoop",
        needs: Glib,
        knows_tsan: false,
        declare: "static GMainLoop *loop_$; static gboolean idle_$(gpointer p) { (void)p; TOUCH g_main_loop_quit(loop_$); return FALSE; } static gpointer child_$(gpointer p) { GMainContext *v = (GMainContext *)p; g_main_context_push_thread_default(v); g_main_loop_run(loop_$); g_main_context_pop_thread_default(v); return 0; }",
        run: "{ GMainContext *v = g_main_context_new(); loop_$ = g_main_loop_new(v, FALSE); GThread *t = g_thread_new(\"t\", child_$, v); TOUCH GSource *s = g_idle_source_new(); g_source_set_callback(s, idle_$, 0, 0); g_source_attach(s, v); g_thread_join(t); TOUCH }",
        ..STRUCTURE
    },
    Structure {
        name: "callback of a library",
        needs: Plain,
        knows_tsan: false,
        declare: "static void called_$(void *p) { (void)p; TOUCH }",
        run: "TOUCH plain_run(called_$, 0); TOUCH",
        ..STRUCTURE
    },
    Structure {
        name: "tbb::parallel_for",
        needs: Tbb,
        knows_tsan: false,
        declare: "static long slots_$[32]; static tbb::spin_mutex m_$;",
        run: "tbb::parallel_for(0, 32, [](int i) { slots_$[i] += i; if (i % 8 == 0) { tbb::spin_mutex::scoped_lock guard(m_$); TOUCH } }); for (long v : slots_$) keep(v); TOUCH",
        ..STRUCTURE
    },
    Structure {
        name: "tbb::task_group",
        needs: Tbb,
        knows_tsan: false,
        declare: "static long slots_$[4];",
        run: "{ tbb::task_group g; for (int i = 0; i < 4; i++) g.run([i] { slots_$[i]++; }); g.wait(); for (long v : slots_$) keep(v); g.run_and_wait([] { TOUCH }); TOUCH }",
        ..STRUCTURE
    },
    Structure {
        name: "tbb::parallel_reduce",
        needs: Tbb,
        knows_tsan: false,
        run: "{ TOUCH keep(tbb::parallel_reduce(tbb::blocked_range<int>(0, 64), 0L, [](const tbb::blocked_range<int> &r, long sum) { for (int i = r.begin(); i < r.end(); i++) sum += i; return sum; }, std::plus<long>())); TOUCH }",
        ..STRUCTURE
    },
    Structure {
        name: "OpenMP: loop and reduction",
        needs: OpenMp,
        knows_tsan: false,
        run: "{ long sum = 0, slots[32]; _Pragma(\"omp parallel for num_threads(3) reduction(+ : sum) schedule(dynamic, 2)\") for (int i = 0; i < 32; i++) { slots[i] = i; sum += i; } _Pragma(\"omp parallel for num_threads(2) schedule(static)\") for (int i = 0; i < 32; i++) slots[i] += 1; keep(sum + slots[3]); TOUCH }",
        ..STRUCTURE
    },
    Structure {
        name: "OpenMP: critical, single, barrier",
        needs: OpenMp,
        knows_tsan: false,
        run: "{ long count = 0, hits = 0; _Pragma(\"omp parallel num_threads(3)\") { _Pragma(\"omp single\") { TOUCH } _Pragma(\"omp critical(section)\") { count++; } _Pragma(\"omp atomic\") hits++; _Pragma(\"omp barrier\") keep(count); _Pragma(\"omp master\") { TOUCH } _Pragma(\"omp barrier\") _Pragma(\"omp single nowait\") { TOUCH } } keep(count + hits); }",
        ..STRUCTURE
    },
    Structure {
        name: "OpenMP: sections and ordered",
        needs: OpenMp,
        knows_tsan: false,
        run: "{ long a = 0, b = 0; _Pragma(\"omp parallel sections num_threads(2)\") { _Pragma(\"omp section\") { a = 1; } _Pragma(\"omp section\") { b = 2; } } keep(a + b); _Pragma(\"omp parallel for ordered num_threads(3) schedule(dynamic)\") for (int i = 0; i < 5; i++) { keep(i); _Pragma(\"omp ordered\") { TOUCH } } }",
        ..STRUCTURE
    },
    Structure {
        name: "OpenMP: tasks that depend",
        needs: OpenMp,
        knows_tsan: false,
        run: "{ long a = 0, b = 0; _Pragma(\"omp parallel num_threads(3)\") _Pragma(\"omp single\") { _Pragma(\"omp task depend(out : a)\") { a = 1; TOUCH } _Pragma(\"omp task depend(in : a) depend(out : b)\") { b = a + 1; } _Pragma(\"omp task depend(inout : a) depend(in : b)\") { a += b; TOUCH } _Pragma(\"omp taskwait\") keep(a); TOUCH } }",
        ..STRUCTURE
    },
    Structure {
        name: "OpenMP: task groups and loops",
        needs: OpenMp,
        knows_tsan: false,
        run: "{ long slots[12]; memset(slots, 0, sizeof slots); _Pragma(\"omp parallel num_threads(3)\") _Pragma(\"omp single\") { _Pragma(\"omp taskgroup\") { for (int i = 0; i < 4; i++) { _Pragma(\"omp task firstprivate(i) shared(slots)\") { slots[i] = i; _Pragma(\"omp task firstprivate(i) shared(slots)\") slots[4 + i] = i; } } } keep(slots[2] + slots[6]); _Pragma(\"omp taskloop grainsize(2) shared(slots)\") for (int i = 0; i < 12; i++) slots[i]++; TOUCH } keep(slots[3]); }",
        ..STRUCTURE
    },
    Structure {
        name: "OpenMP: locks",
        needs: OpenMp,
        knows_tsan: false,
        declare: "static omp_lock_t l_$; static omp_nest_lock_t n_$;",
        setup: "omp_init_lock(&l_$); omp_init_nest_lock(&n_$);",
        run: "_Pragma(\"omp parallel num_threads(3)\") { omp_set_lock(&l_$); TOUCH omp_unset_lock(&l_$); _Pragma(\"omp barrier\") omp_set_nest_lock(&n_$); omp_set_nest_lock(&n_$); TOUCH omp_unset_nest_lock(&n_$); omp_unset_nest_lock(&n_$); }",
        ..STRUCTURE
    },
];
