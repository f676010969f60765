/* Every atomic operation on sixteen bytes, by two threads that count together. */
#include <pthread.h>
#include <stdio.h>

typedef unsigned __int128 wide;
enum { ROUNDS = 200 };
static wide sum __attribute__((aligned(16))), mixed __attribute__((aligned(16)));
static const wide step = ((wide)1 << 64) + 3;

static void *count(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        __atomic_fetch_add(&sum, step, __ATOMIC_SEQ_CST);
        wide seen = __atomic_load_n(&sum, __ATOMIC_ACQUIRE);
        while (!__atomic_compare_exchange_n(&sum, &seen, seen + step, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {}
    }
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, count, 0);
    count(0);
    pthread_join(thread, 0);
    __atomic_store_n(&mixed, step, __ATOMIC_RELEASE);
    int right = __atomic_exchange_n(&mixed, ~(wide)0, __ATOMIC_SEQ_CST) == step;
    __atomic_fetch_and(&mixed, ~step, __ATOMIC_SEQ_CST);
    __atomic_fetch_or(&mixed, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_xor(&mixed, 2, __ATOMIC_SEQ_CST);
    __atomic_fetch_sub(&mixed, 1, __ATOMIC_SEQ_CST);
    right += __atomic_fetch_nand(&mixed, step << 1, __ATOMIC_SEQ_CST) == ((~step | 1) ^ 2) - 1;
    printf("%d %d\n", right, sum == step * 4 * ROUNDS);
    return 0;
}
