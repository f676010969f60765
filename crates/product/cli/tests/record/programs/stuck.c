// Threads that get stuck in some runs, and not in the recorded one. The first argument says how; with a second
// one, "safe", they cannot.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static pthread_barrier_t barrier;
static int is_safe, is_ready, work;
static atomic_int is_ready_early;

// The waiting thread must wait before it is woken, in the recorded run.
static void pause_for_others(void) { usleep(40000); }

static void lock(pthread_mutex_t *it) { pthread_mutex_lock(it); }
static void unlock(pthread_mutex_t *it) { pthread_mutex_unlock(it); }

// A wait without a predicate.
static void *bare_wait(void *unused) {
    pthread_mutex_lock(&mutex);
    pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *right_wait(void *unused) {
    pthread_mutex_lock(&mutex);
    while (!is_ready) pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *bare_notify(void *unused) {
    pause_for_others();
    lock(&mutex);
    is_ready = 1;
    pthread_cond_signal(&condition);
    unlock(&mutex);
    return unused;
}

// A notify without the lock: it can come between the check and the wait.
static void *checked_wait(void *unused) {
    lock(&mutex);
    while (!atomic_load(&is_ready_early)) pthread_cond_wait(&condition, &mutex);
    unlock(&mutex);
    return unused;
}

static void *unlocked_notify(void *unused) {
    pause_for_others();
    if (is_safe) lock(&mutex);
    atomic_store(&is_ready_early, 1);
    pthread_cond_broadcast(&condition);
    if (is_safe) unlock(&mutex);
    return unused;
}

// A check before the lock is taken.
static void *early_check(void *unused) {
    if (is_safe) lock(&mutex);
    int must_wait = !atomic_load(&is_ready_early);
    if (!is_safe) lock(&mutex);
    if (must_wait) pthread_cond_wait(&condition, &mutex);
    unlock(&mutex);
    return unused;
}

static void *late_notify(void *unused) {
    pause_for_others();
    lock(&mutex);
    atomic_store(&is_ready_early, 1);
    pthread_cond_signal(&condition);
    unlock(&mutex);
    return unused;
}

// A lock that is held while the thread waits for a post that needs it; or for a barrier, or a notify.
static void *post_under_lock(void *unused) {
    lock(&other);
    work++;
    unlock(&other);
    pause_for_others();
    sem_post(&semaphore);
    return unused;
}

static void *take_under_lock(void *unused) {
    if (is_safe) sem_wait(&semaphore);
    lock(&other);
    if (!is_safe) sem_wait(&semaphore);
    unlock(&other);
    return unused;
}

static void *arrive_after_lock(void *unused) {
    lock(&other);
    unlock(&other);
    pause_for_others();
    pthread_barrier_wait(&barrier);
    return unused;
}

static void *arrive_under_lock(void *unused) {
    usleep(10000);
    if (!is_safe) lock(&other);
    pthread_barrier_wait(&barrier);
    if (!is_safe) unlock(&other);
    return unused;
}

static void *need_lock(void *unused) {
    lock(&other);
    work++;
    unlock(&other);
    return unused;
}

// A thread that ends with a lock that it holds.
static void *keep_lock(void *unused) {
    pause_for_others();
    lock(&other);
    work++;
    if (is_safe) unlock(&other);
    return unused;
}

static void *need_lock_only(void *unused) {
    lock(&other);
    unlock(&other);
    return unused;
}

// Who joins this one waits for another as well.
static pthread_t inner;

static void *join_inner(void *unused) {
    pthread_join(inner, NULL);
    return unused;
}

static void start(void *(*first)(void *), void *(*second)(void *)) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

// A wait that has a time limit loses nothing.
// Semaphores that start at one, as locks: taken in both orders.
static sem_t left, right;

static void take_both(sem_t *first, sem_t *second) {
    sem_wait(first);
    sem_wait(second);
    work++;
    sem_post(second);
    sem_post(first);
}

static void *left_first(void *unused) {
    take_both(&left, &right);
    return unused;
}

static void *right_first(void *unused) {
    pause_for_others();
    take_both(is_safe ? &left : &right, is_safe ? &right : &left);
    return unused;
}

// The only token of a buffer, held while waiting for what is put into it.
static void *put_item(void *unused) {
    sem_wait(&left);
    work++;
    sem_post(&left);
    sem_post(&right);
    return unused;
}

static void *take_item(void *unused) {
    pause_for_others();
    if (is_safe) sem_wait(&right);
    sem_wait(&left);
    if (!is_safe) sem_wait(&right);
    work--;
    sem_post(&left);
    return unused;
}

static void *timed_wait(void *unused) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 5;
    lock(&mutex);
    pthread_cond_timedwait(&condition, &mutex, &until);
    unlock(&mutex);
    return unused;
}

// A predicate that nobody sees looked at: it may say that the thread must not wait.
__attribute__((no_sanitize("thread"), noinline)) static int is_ready_unseen(void) { return *(volatile int *)&is_ready; }
__attribute__((no_sanitize("thread"), noinline)) static void set_ready_unseen(void) { *(volatile int *)&is_ready = 1; }

static void *unseen_wait(void *unused) {
    pthread_mutex_lock(&mutex);
    while (!is_ready_unseen()) pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *unseen_notify(void *unused) {
    pause_for_others();
    lock(&mutex);
    set_ready_unseen();
    pthread_cond_signal(&condition);
    unlock(&mutex);
    return unused;
}

// A thread that would notify, but is cancelled when it is no longer needed.
static void *notify_later(void *unused) {
    sleep(3);
    bare_notify(NULL);
    return unused;
}

// A worker that nobody waits for, and one that wakes others for as long as the program runs.
static void *serve(void *unused) {
    lock(&mutex);
    for (;;) pthread_cond_wait(&condition, &mutex);
    return unused;
}

static void *wake_all(void *unused) {
    for (;;) {
        usleep(1000);
        pthread_cond_broadcast(&condition);
    }
    return unused;
}

static void *wait_once(void *unused) {
    lock(&mutex);
    pthread_cond_wait(&condition, &mutex);
    unlock(&mutex);
    return unused;
}

int main(int count, char **words) {
    const char *how = words[1];
    is_safe = count > 2;
    if (!strcmp(how, "bare")) start(is_safe ? right_wait : bare_wait, bare_notify);
    if (!strcmp(how, "notify")) start(checked_wait, unlocked_notify);
    if (!strcmp(how, "check")) start(early_check, late_notify);
    if (!strcmp(how, "post")) {
        sem_init(&semaphore, 0, 0);
        start(post_under_lock, take_under_lock);
    }
    if (!strcmp(how, "barrier")) {
        pthread_barrier_init(&barrier, NULL, 2);
        start(arrive_after_lock, arrive_under_lock);
    }
    if (!strcmp(how, "join")) {
        pthread_t thread;
        pthread_create(&thread, NULL, need_lock, NULL);
        pause_for_others();
        if (!is_safe) lock(&other);
        pthread_join(thread, NULL);
        if (!is_safe) unlock(&other);
    }
    if (!strcmp(how, "keep")) start(keep_lock, need_lock_only);
    if (!strcmp(how, "chain")) {
        pthread_t thread;
        pthread_create(&inner, NULL, need_lock, NULL);
        pthread_create(&thread, NULL, join_inner, NULL);
        pause_for_others();
        if (!is_safe) lock(&other);
        pthread_join(thread, NULL);
        if (!is_safe) unlock(&other);
    }
    if (!strcmp(how, "tokens")) {
        sem_init(&left, 0, 1);
        sem_init(&right, 0, 1);
        start(left_first, right_first);
    }
    if (!strcmp(how, "buffer")) {
        sem_init(&left, 0, 1);
        sem_init(&right, 0, 0);
        start(put_item, take_item);
    }
    if (!strcmp(how, "timed")) start(timed_wait, bare_notify);
    if (!strcmp(how, "unseen")) start(unseen_wait, unseen_notify);
    if (!strcmp(how, "cancel")) {
        pthread_t later;
        pthread_create(&later, NULL, notify_later, NULL);
        start(bare_wait, bare_notify);
        pthread_cancel(later);
        pthread_join(later, NULL);
    }
    if (!strcmp(how, "server")) {
        pthread_t thread;
        pthread_create(&thread, NULL, serve, NULL);
        pause_for_others();
        lock(&mutex);
        pthread_cond_signal(&condition);
        unlock(&mutex);
    }
    if (!strcmp(how, "ticker")) {
        pthread_t threads[2];
        pthread_create(&threads[0], NULL, wake_all, NULL);
        pthread_create(&threads[1], NULL, wait_once, NULL);
        pthread_join(threads[1], NULL);
    }
    puts("done");
    return 0;
}
