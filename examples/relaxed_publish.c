/* Data that is published through a relaxed flag.
 *
 * Wrong: `publish` stores `ready` with a relaxed order, and `read_it` loads it so. That the flag is seen does
 * not mean that the data is.
 * An ordinary run: on x86-64 stores become visible in order, and the data is there.
 * reweave: the write and the read of `answer` are a race: nothing orders them.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

static int answer;
static atomic_int ready;

static void *publish(void *nothing) {
    answer = 42;
    atomic_store_explicit(&ready, 1, memory_order_relaxed);
    return nothing;
}

static void *read_it(void *nothing) {
    while (!atomic_load_explicit(&ready, memory_order_relaxed))
        sched_yield();
    printf("the answer is %d\n", answer);
    return nothing;
}

int main(void) {
    pthread_t publisher, reader;
    pthread_create(&publisher, NULL, publish, NULL);
    pthread_create(&reader, NULL, read_it, NULL);
    pthread_join(publisher, NULL);
    pthread_join(reader, NULL);
    return 0;
}
