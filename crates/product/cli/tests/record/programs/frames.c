/* Variables of functions that other threads use. With an argument, one is used after its function can have returned; without
   one, nothing is wrong. */
#include <alloca.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int *shared, sum;

static void *use(void *unused) {
    pthread_mutex_lock(&mutex);
    if (shared) sum += *shared;
    pthread_mutex_unlock(&mutex);
    return unused;
}

/* Leaves a pointer to its variable behind, for a while. */
__attribute__((noinline)) static void give(int is_taken_back) {
    int local = 5;
    pthread_mutex_lock(&mutex);
    shared = &local;
    pthread_mutex_unlock(&mutex);
    usleep(50000);
    if (!is_taken_back) return;
    pthread_mutex_lock(&mutex);
    shared = NULL;
    pthread_mutex_unlock(&mutex);
}

/* A number, and how to wait until another thread is done with it. */
struct number {
    int value;
    sem_t done;
};

static void *add(void *argument) {
    struct number *number = argument;
    pthread_mutex_lock(&mutex);
    number->value++;
    pthread_mutex_unlock(&mutex);
    sem_post(&number->done);
    return NULL;
}

__attribute__((noinline)) static void begin(struct number *number, int value) {
    pthread_t thread;
    number->value = value;
    sem_init(&number->done, 0, 0);
    pthread_create(&thread, NULL, add, number);
    pthread_detach(thread);
}

static int await(struct number *number) {
    while (sem_wait(&number->done)) {
    }
    pthread_mutex_lock(&mutex);
    int value = number->value;
    pthread_mutex_unlock(&mutex);
    return value;
}

/* What lives in a function while those return that it calls: variables of a size that is not known before. */
__attribute__((noinline)) static int variable(int count) {
    struct number numbers[count], *more = alloca(count * sizeof *more);
    int total = 0;
    for (int i = 0; i < count; i++) {
        begin(&numbers[i], i);
        begin(&more[i], i);
    }
    for (int i = 0; i < count; i++) total += await(&numbers[i]) + await(&more[i]);
    return total;
}

/* The same place on the stack is another variable each time. */
__attribute__((noinline)) static int again(int depth) {
    struct number local;
    begin(&local, depth);
    int value = await(&local);
    return depth ? value + again(depth - 1) : value;
}

/* Functions that are left by a jump. */
static jmp_buf place;

__attribute__((noinline)) static int jump(int depth) {
    struct number local;
    begin(&local, depth);
    sum += await(&local);
    if (!depth) longjmp(place, 1);
    return depth > 9 ? 0 : jump(depth - 1) + 1;
}

__attribute__((noinline)) static int jumped(void) {
    struct number local;
    begin(&local, 1);
    if (!setjmp(place)) sum += jump(2);
    return await(&local);
}

/* Two stacks of one thread, whose functions return by turns. */
static ucontext_t outer, inner;
static char stack[1 << 17];

static void other_stack(void) {
    struct number local;
    begin(&local, 1);
    swapcontext(&inner, &outer);
    sum += await(&local);
}

__attribute__((noinline)) static void turn(void) {
    struct number local;
    begin(&local, 2);
    swapcontext(&outer, &inner);
    sum += await(&local);
}

int main(int count, char **words) {
    (void)words;
    pthread_t thread;
    pthread_create(&thread, NULL, use, NULL);
    give(count == 1);
    pthread_mutex_lock(&mutex);
    shared = NULL;
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    if (count == 1) {
        sum += variable(3);
        sum += again(3);
        sum += jumped();
        getcontext(&inner);
        inner.uc_stack.ss_sp = stack;
        inner.uc_stack.ss_size = sizeof stack;
        inner.uc_link = &outer;
        makecontext(&inner, other_stack, 0);
        turn();
        swapcontext(&outer, &inner);
    }
    printf("%d\n", sum);
    return 0;
}
