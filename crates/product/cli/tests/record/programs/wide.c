// Atomic and plain accesses of sixteen bytes.
#include <pthread.h>
#include <stdio.h>

typedef unsigned __int128 u128;
typedef long long pair __attribute__((vector_size(16)));

_Alignas(16) u128 a;
pair b;

static void *other(void *unused) {
    u128 seen = __sync_val_compare_and_swap(&a, (u128)5 << 64 | 7, (u128)6 << 64 | 8);
    seen = __sync_val_compare_and_swap(&a, seen, (u128)1);
    b += 1;
    printf("%llu %llu\n", (unsigned long long)(seen >> 64), (unsigned long long)seen);
    return unused;
}

int main(void) {
    pthread_t thread;
    a = (u128)5 << 64 | 7;
    pthread_create(&thread, 0, other, 0);
    pthread_join(thread, 0);
    printf("%llu %llu\n", (unsigned long long)(a >> 64), (unsigned long long)a);
    printf("%lld\n", b[0] + b[1]);
    return 0;
}
