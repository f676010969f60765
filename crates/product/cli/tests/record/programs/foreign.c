/* Flags that a library sets which is not built for recording: each box is written before its flag is set,
   and read after that was seen. Who does not notice that nobody was seen to set them finds races. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

void set_plain(int *flag);
void set_atomic(int *flag);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int box[2], plain_flag, atomic_flag;

static int is_set(void) {
    pthread_mutex_lock(&lock);
    int seen = plain_flag;
    pthread_mutex_unlock(&lock);
    return seen;
}

static void *give(void *unused) {
    box[0] = 1;
    pthread_mutex_lock(&lock);
    set_plain(&plain_flag);
    pthread_mutex_unlock(&lock);
    box[1] = 1;
    set_atomic(&atomic_flag);
    return unused;
}

static void *take(void *unused) {
    while (!is_set()) sched_yield();
    int sum = box[0];
    while (!__atomic_load_n(&atomic_flag, __ATOMIC_ACQUIRE)) sched_yield();
    printf("%d\n", sum + box[1]);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    __atomic_store_n(&atomic_flag, 0, __ATOMIC_RELAXED);
    if (is_set()) return 1;
    pthread_create(&threads[0], 0, give, 0);
    pthread_create(&threads[1], 0, take, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
