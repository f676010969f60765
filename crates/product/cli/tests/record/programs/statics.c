/* What locks made of atomics protect is static, and its address is nowhere taken. Compilers may not keep it in
   registers across the locks all the same. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_flag flag = ATOMIC_FLAG_INIT;
static int word;
static long by_flag;
static struct {
    long first, others[3];
} by_word;

#define ADD(amount)                                                              \
    while (atomic_flag_test_and_set_explicit(&flag, memory_order_acquire)) {     \
    }                                                                            \
    by_flag += amount;                                                           \
    atomic_flag_clear_explicit(&flag, memory_order_release);                     \
    while (__sync_lock_test_and_set(&word, 1)) {                                 \
    }                                                                            \
    by_word.others[1] += amount;                                                 \
    __sync_lock_release(&word);

static void *work(void *nothing) {
    ADD(1) ADD(2) ADD(3)
    return nothing;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    ADD(10) ADD(20) ADD(30) ADD(40)
    pthread_join(thread, NULL);
    printf("%ld %ld\n", by_flag, by_word.others[1]);
    return 0;
}
