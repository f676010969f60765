// Two locks in two orders, by threads that follow each other.
#include <pthread.h>
#include <stdio.h>

pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
int x;

static void *forward(void *unused) {
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    x++;
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return unused;
}

static void *backward(void *unused) {
    pthread_mutex_lock(&b);
    pthread_mutex_lock(&a);
    x++;
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    return unused;
}

int main(void) {
    pthread_t first, second;
    pthread_create(&first, 0, forward, 0);
    pthread_create(&second, 0, backward, 0);
    pthread_join(first, 0);
    pthread_join(second, 0);
    printf("%d\n", x);
    return 0;
}
