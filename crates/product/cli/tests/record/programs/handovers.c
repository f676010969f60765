/* Hand-overs of a box by something that only assembler writes, in the way that the first argument says. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int box;
static int *flag;
static long count;
static sem_t middle;
static char way;

static void set(volatile int *at) { __asm__ volatile("movl $1, %0" : "=m"(*at) : : "memory"); }

static int decrease(volatile long *at) {
    char is_zero;
    __asm__ volatile("lock decq %0; sete %1" : "+m"(*at), "=q"(is_zero) : : "memory");
    return is_zero;
}

static void await(int *at) {
    while (!__atomic_load_n(at, __ATOMIC_ACQUIRE)) sched_yield();
}

static void *give(void *unused) {
    box = 1;
    switch (way) {
    case 'f': /* Flags in memory that the first thread made. */
    case 'c':
    case 'm':
        set(flag);
        break;
    case 'e': { /* Written by a thread whose turn is over. */
        struct timespec begin, now;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        do {
            for (int i = 0; i < 1000; i++) __asm__ volatile("pause");
            __asm__ volatile("syscall" : : "a"(228), "D"(1), "S"(&now) : "rcx", "r11", "memory");
        } while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < begin.tv_sec * 1000 + begin.tv_nsec / 1000000 + 300);
        set(flag);
        break;
    }
    case 'r': /* A counter of references. */
        decrease(&count);
        break;
    case 's': /* A third thread sets the flag. */
        sem_post(&middle);
        break;
    }
    return unused;
}

static void *pass(void *unused) {
    sem_wait(&middle);
    set(flag);
    return unused;
}

static int take(void) {
    if (way == 'r') {
        while (__atomic_load_n(&count, __ATOMIC_RELAXED) > 1) sched_yield();
        if (__atomic_fetch_sub(&count, 1, __ATOMIC_RELEASE) == 1) __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } else {
        await(flag);
    }
    return box;
}

static void *taker(void *unused) {
    printf("%d\n", take());
    return unused;
}

int main(int argument_count, char **arguments) {
    way = argument_count > 1 ? arguments[1][0] : 'f';
    switch (way) {
    case 'c': flag = calloc(1, sizeof *flag); break;
    case 'm': flag = memset(malloc(sizeof *flag), 0, sizeof *flag); break;
    default:
        flag = malloc(sizeof *flag);
        *flag = 0;
    }
    count = 2;
    sem_init(&middle, 0, 0);
    pthread_t threads[3];
    pthread_create(&threads[0], 0, give, 0);
    pthread_create(&threads[1], 0, taker, 0);
    if (way == 's') pthread_create(&threads[2], 0, pass, 0);
    for (int i = 0; i < (way == 's' ? 3 : 2); i++) pthread_join(threads[i], 0);
    return 0;
}
