/* self_deadlock.c, fixed: who holds the lock reads the sum itself. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int sum;

static int total(void) {
    pthread_mutex_lock(&lock);
    int now = sum;
    pthread_mutex_unlock(&lock);
    return now;
}

static void *add(void *nothing) {
    pthread_mutex_lock(&lock);
    sum = sum + 1;
    pthread_mutex_unlock(&lock);
    return nothing;
}

int main(void) {
    pthread_t adder;
    pthread_create(&adder, NULL, add, NULL);
    pthread_join(adder, NULL);
    printf("sum %d\n", total());
    return 0;
}
