// The threads of the C standard.
#include <stdio.h>
#include <threads.h>
#include <time.h>

mtx_t plain, timed, recursive;
cnd_t c;
once_flag flag = ONCE_FLAG_INIT;
int once_count, ready, x;

static void do_once(void) { once_count++; }

static struct timespec soon(void) {
    struct timespec until;
    timespec_get(&until, TIME_UTC);
    until.tv_nsec += 5000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return until;
}

static int other(void *unused) {
    struct timespec until = soon();
    (void)unused;
    call_once(&flag, do_once);
    printf("%d", mtx_trylock(&timed) == thrd_busy);
    printf(" %d\n", mtx_timedlock(&timed, &until) == thrd_timedout);
    mtx_lock(&plain);
    ready = 1;
    cnd_signal(&c);
    mtx_unlock(&plain);
    x++;
    return 42;
}

static int alone(void *unused) {
    (void)unused;
    mtx_lock(&plain);
    ready = 2;
    cnd_broadcast(&c);
    mtx_unlock(&plain);
    thrd_exit(0);
}

int main(void) {
    struct timespec until, nap = {0, 1000000};
    thrd_t thread;
    int result;
    mtx_init(&plain, mtx_plain);
    mtx_init(&timed, mtx_timed);
    mtx_init(&recursive, mtx_plain | mtx_recursive);
    cnd_init(&c);
    call_once(&flag, do_once);
    mtx_lock(&timed);
    mtx_lock(&plain);
    until = soon();
    printf("%d\n", cnd_timedwait(&c, &plain, &until) == thrd_timedout);
    thrd_create(&thread, other, 0);
    while (!ready) cnd_wait(&c, &plain);
    mtx_unlock(&plain);
    mtx_unlock(&timed);
    thrd_join(thread, &result);
    mtx_lock(&recursive);
    mtx_lock(&recursive);
    printf("%d", mtx_trylock(&recursive) == thrd_success);
    mtx_unlock(&recursive);
    mtx_unlock(&recursive);
    mtx_unlock(&recursive);
    mtx_lock(&plain);
    thrd_create(&thread, alone, 0);
    thrd_detach(thread);
    while (ready != 2) cnd_wait(&c, &plain);
    mtx_unlock(&plain);
    thrd_sleep(&nap, 0);
    thrd_yield();
    printf(" %d %d %d\n", result, once_count, x);
    mtx_destroy(&recursive);
    return 0;
}
