/* Threads that all need what one of them sets up: whoever finds it done reads it. */
#include <pthread.h>
#include <stdio.h>
#include <threads.h>

static pthread_once_t control = PTHREAD_ONCE_INIT;
static once_flag flag = ONCE_FLAG_INIT;
static int first, second;

static void set_first(void) { first = 1; }
static void set_second(void) { second = 2; }

static void *need(void *unused) {
    (void)unused;
    pthread_once(&control, set_first);
    int sum = first;
    call_once(&flag, set_second);
    sum += second;
    return sum == 3 ? 0 : &control;
}

int main(void) {
    pthread_t threads[4];
    int wrong = 0;
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, need, 0);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        wrong += result != 0;
    }
    printf("%d\n", wrong);
    return wrong;
}
