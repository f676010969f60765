// A lock made of a word and system calls, and blocks that are meant to be atomic.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <reweave.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

atomic_int word;
int x;

static void lock(void) {
    int expected = 0;
    if (atomic_compare_exchange_strong(&word, &expected, 1)) return;
    while (atomic_exchange(&word, 2) != 0) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 2, 0, 0, 0);
}

static void unlock(void) {
    if (atomic_exchange(&word, 0) == 2) syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

static void *add(void *unused) {
    for (int i = 0; i < 100; i++) {
        reweave_atomic_begin("add");
        lock();
        x++;
        unlock();
        reweave_atomic_end();
    }
    return unused;
}

int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, add, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    printf("%d\n", x);
    return 0;
}
