// A thread tries to take a lock that another one has, and remembers whether it had to try again. The first
// argument says which lock, or another way to do so. With "signal" and "signal_by_semaphore" it takes a
// failed attempt for a sign that the other is so far, but that orders nothing.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static mtx_t standard;
static sem_t semaphore;
static atomic_int word;
static int data;

static struct timespec *soon(void) {
    static thread_local struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += 1000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_nsec -= 1000000000;
        time.tv_sec++;
    }
    return &time;
}

// Tries until it succeeds, and says how often it did not.
#define UNTIL(name, attempt)                                   \
    static int name(void) {                                    \
        int failures = 0;                                      \
        for (; !(attempt); failures++) sched_yield();          \
        return failures;                                       \
    }

static void lock_mutex(void) { pthread_mutex_lock(&mutex); }
UNTIL(try_mutex, pthread_mutex_trylock(&mutex) == 0)
static void unlock_mutex(void) { pthread_mutex_unlock(&mutex); }
UNTIL(time_mutex, pthread_mutex_timedlock(&mutex, soon()) == 0)

static void lock_spin(void) { pthread_spin_lock(&spin); }
UNTIL(try_spin, pthread_spin_trylock(&spin) == 0)
static void unlock_spin(void) { pthread_spin_unlock(&spin); }

static void share(void) { pthread_rwlock_rdlock(&shared); }
UNTIL(try_writer, pthread_rwlock_trywrlock(&shared) == 0)
static void write_lock(void) { pthread_rwlock_wrlock(&shared); }
UNTIL(try_reader, pthread_rwlock_tryrdlock(&shared) == 0)
static void unlock_shared(void) { pthread_rwlock_unlock(&shared); }

static void lock_standard(void) { mtx_lock(&standard); }
UNTIL(try_standard, mtx_trylock(&standard) == thrd_success)
static void unlock_standard(void) { mtx_unlock(&standard); }
UNTIL(time_standard, mtx_timedlock(&standard, soon()) == thrd_success)

static void take(void) { sem_wait(&semaphore); }
UNTIL(try_take, sem_trywait(&semaphore) == 0)
static void post(void) { sem_post(&semaphore); }
UNTIL(time_take, sem_timedwait(&semaphore, soon()) == 0)

static void lock_stream(void) { flockfile(stderr); }
UNTIL(try_stream, ftrylockfile(stderr) == 0)
static void unlock_stream(void) { funlockfile(stderr); }

UNTIL(try_word, !atomic_exchange_explicit(&word, 1, memory_order_acquire))
static void lock_word(void) { try_word(); }
static void unlock_word(void) { atomic_store_explicit(&word, 0, memory_order_release); }

static const struct way {
    const char *name;
    void (*lock)(void);
    int (*attempt)(void);
    void (*unlock)(void);
} ways[] = {
    {"mutex", lock_mutex, try_mutex, unlock_mutex},
    {"timed", lock_mutex, time_mutex, unlock_mutex},
    {"spin", lock_spin, try_spin, unlock_spin},
    {"writer", share, try_writer, unlock_shared},
    {"reader", write_lock, try_reader, unlock_shared},
    {"standard", lock_standard, try_standard, unlock_standard},
    {"standard_timed", lock_standard, time_standard, unlock_standard},
    {"semaphore", take, try_take, post},
    {"semaphore_timed", take, time_take, post},
    {"stream", lock_stream, try_stream, unlock_stream},
    {"word", lock_word, try_word, unlock_word},
};

static void *other(void *way) {
    const struct way *how = way;
    how->lock();
    usleep(5000);
    data = 1;
    how->unlock();
    return NULL;
}

// A reader cannot share the lock once more because a writer waits: its section comes after the reader's.
static atomic_int failed;

static void *write_behind(void *unused) {
    usleep(1000);
    pthread_rwlock_wrlock(&shared);
    pthread_rwlock_unlock(&shared);
    if (atomic_load_explicit(&failed, memory_order_relaxed)) data = 2;
    return unused;
}

static int stay_behind(void) {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&shared, &attributes);
    pthread_t thread;
    pthread_create(&thread, NULL, write_behind, NULL);
    data = 1;
    pthread_rwlock_rdlock(&shared);
    usleep(5000);
    if (pthread_rwlock_tryrdlock(&shared) == 0) {
        pthread_rwlock_unlock(&shared);
    } else {
        atomic_store_explicit(&failed, 1, memory_order_relaxed);
    }
    pthread_rwlock_unlock(&shared);
    pthread_join(thread, NULL);
    return 0;
}

// Who finds the pipe empty knows that the other has the mutex, or had it.
static int files[2];

static void *take_token(void *unused) {
    char token;
    pthread_mutex_lock(&mutex);
    while (read(files[0], &token, 1) != 1) {}
    usleep(5000);
    data = 1;
    pthread_mutex_unlock(&mutex);
    return unused;
}

static int find_empty(void) {
    char token = 0;
    if (pipe(files) || write(files[1], &token, 1) != 1) return 1;
    fcntl(files[0], F_SETFL, O_NONBLOCK);
    pthread_t thread;
    pthread_create(&thread, NULL, take_token, NULL);
    usleep(1000);
    if (read(files[0], &token, 1) == 1) {
        if (write(files[1], &token, 1) != 1) return 1;
    } else {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        data = 2;
    }
    pthread_join(thread, NULL);
    return 0;
}

static void *begin_with_semaphore(void *unused) {
    data = 1;
    sem_wait(&semaphore);
    usleep(5000);
    sem_post(&semaphore);
    return unused;
}

static int signal_by_semaphore(void) {
    sem_init(&semaphore, 0, 1);
    pthread_t thread;
    pthread_create(&thread, NULL, begin_with_semaphore, NULL);
    usleep(1000);
    if (sem_trywait(&semaphore)) {
        data = 2;
    } else {
        sem_post(&semaphore);
    }
    pthread_join(thread, NULL);
    return 0;
}

// The third failure is reached only if all three fall into one section.
static void *write_afterwards(void *unused) {
    pthread_mutex_lock(&mutex);
    usleep(5000);
    pthread_mutex_unlock(&mutex);
    data = 1;
    return unused;
}

static int fail_thrice(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, write_afterwards, NULL);
    usleep(1000);
    for (int failures = 0; pthread_mutex_trylock(&mutex); sched_yield()) {
        if (++failures == 3) data = 2;
    }
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    return 0;
}

static void *begin(void *unused) {
    data = 1;
    pthread_mutex_lock(&mutex);
    usleep(5000);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static int signal_by_mutex(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, begin, NULL);
    usleep(1000);
    if (pthread_mutex_trylock(&mutex)) {
        data = 2;
    } else {
        pthread_mutex_unlock(&mutex);
    }
    pthread_join(thread, NULL);
    return 0;
}

int main(int count, char **words) {
    if (count < 2) return 1;
    if (!strcmp(words[1], "behind")) return stay_behind();
    if (!strcmp(words[1], "pipe")) return find_empty();
    if (!strcmp(words[1], "signal")) return signal_by_mutex();
    if (!strcmp(words[1], "signal_by_semaphore")) return signal_by_semaphore();
    if (!strcmp(words[1], "thrice")) return fail_thrice();
    const struct way *how = ways;
    while (strcmp(how->name, words[1])) how++;
    pthread_spin_init(&spin, 0);
    mtx_init(&standard, mtx_timed);
    sem_init(&semaphore, 0, 1);
    pthread_t thread;
    pthread_create(&thread, NULL, other, (void *)how);
    usleep(1000);
    int failures = how->attempt();
    how->unlock();
    if (failures) data = 2;
    pthread_join(thread, NULL);
    return data == 0;
}
