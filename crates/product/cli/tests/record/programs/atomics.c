// Atomic accesses of all sizes, with the orders that they ask for.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

_Atomic uint8_t a8;
_Atomic uint16_t a16;
_Atomic uint32_t a32;
_Atomic uint64_t a64;
atomic_flag taken = ATOMIC_FLAG_INIT;
uint32_t plain;

static void *other(void *unused) {
    uint32_t expected = 77;
    uint64_t wide = 3;
    atomic_fetch_add_explicit(&a8, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&a16, 1, memory_order_acquire);
    atomic_fetch_or_explicit(&a32, 12, memory_order_release);
    atomic_fetch_and_explicit(&a64, 7, memory_order_acq_rel);
    atomic_fetch_xor(&a64, 1);
    __atomic_fetch_nand(&plain, 5, __ATOMIC_SEQ_CST);
    printf("%d", atomic_compare_exchange_strong_explicit(&a32, &expected, 1, memory_order_acq_rel,
                                                         memory_order_acquire));
    printf(" %u", expected);
    printf(" %d", atomic_compare_exchange_strong_explicit(&a32, &expected, 1, memory_order_release,
                                                          memory_order_relaxed));
    printf(" %d", atomic_compare_exchange_weak(&a64, &wide, 9));
    printf(" %d", (int)atomic_exchange_explicit(&a16, 4, memory_order_seq_cst));
    printf(" %d\n", (int)atomic_flag_test_and_set_explicit(&taken, memory_order_acquire));
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&a8, 200, memory_order_release);
    return unused;
}

int main(void) {
    pthread_t thread;
    atomic_store_explicit(&a8, 1, memory_order_relaxed);
    atomic_store_explicit(&a16, 2, memory_order_release);
    atomic_store(&a32, 3);
    atomic_store(&a64, 0xff00000000000002);
    atomic_flag_clear_explicit(&taken, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    pthread_create(&thread, 0, other, 0);
    pthread_join(thread, 0);
    printf("%d", (int)atomic_load_explicit(&a8, memory_order_relaxed));
    printf(" %d", (int)atomic_load_explicit(&a16, memory_order_acquire));
    printf(" %d", (int)atomic_load(&a32));
    printf(" %llx %x\n", (unsigned long long)atomic_load(&a64), __atomic_load_n(&plain, __ATOMIC_CONSUME));
    return 0;
}
