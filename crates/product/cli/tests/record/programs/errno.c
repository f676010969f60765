// Calls that succeed leave `errno` as it was; those that fail set it. The same goes for vector
// registers and flags of arithmetic.
#define _GNU_SOURCE
#include <errno.h>
#include <fenv.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
pthread_cond_t c = PTHREAD_COND_INITIALIZER;
pthread_once_t control = PTHREAD_ONCE_INIT;
pthread_barrier_t barrier;
pthread_spinlock_t spin;
sem_t semaphore, handed;
int x, ends[2];
_Atomic int a;
double sum;
static _Thread_local int changed;

#define KEEPS(call)                                         \
    do {                                                    \
        errno = 42;                                         \
        call;                                               \
        if (errno != 42) {                                  \
            changed++;                                      \
            printf("%s changed errno to %d\n", #call, errno); \
        }                                                   \
    } while (0)

#define SETS(call, error)                                        \
    do {                                                         \
        errno = 0;                                               \
        long result = call;                                      \
        printf("%s: %ld %d\n", #call, result, errno == (error)); \
    } while (0)

static struct pollfd *volatile nowhere = (struct pollfd *)8;
static volatile size_t huge = (size_t)-1 / 2;

static void nothing(void) {}

static void *other(void *unused) {
    if (errno != 0) printf("errno of a new thread is %d\n", errno);
    KEEPS(sem_wait(&handed));
    KEEPS(pthread_mutex_lock(&m));
    KEEPS(pthread_cond_signal(&c));
    KEEPS(pthread_mutex_unlock(&m));
    return unused;
}

int main(void) {
    pthread_t thread;
    char byte = 0;
    void *block;
    KEEPS(pthread_barrier_init(&barrier, 0, 1));
    KEEPS(pthread_spin_init(&spin, 0));
    KEEPS(sem_init(&semaphore, 0, 1));
    KEEPS(sem_init(&handed, 0, 0));
    KEEPS(pthread_create(&thread, 0, other, 0));
    KEEPS(usleep(5000));
    KEEPS(pthread_mutex_lock(&m));
    KEEPS(sem_post(&handed));
    KEEPS(pthread_cond_wait(&c, &m));
    KEEPS(pthread_mutex_unlock(&m));
    KEEPS(pthread_join(thread, 0));
    KEEPS(pthread_rwlock_rdlock(&rwlock));
    KEEPS(pthread_rwlock_unlock(&rwlock));
    KEEPS(pthread_spin_lock(&spin));
    KEEPS(pthread_spin_unlock(&spin));
    KEEPS(pthread_barrier_wait(&barrier));
    KEEPS(pthread_once(&control, nothing));
    KEEPS(sem_wait(&semaphore));
    KEEPS(x++);
    KEEPS(a++);
    KEEPS(block = malloc(100));
    KEEPS(memset(block, 1, 100));
    KEEPS(block = realloc(block, 10000));
    KEEPS(free(block));
    KEEPS(block = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    KEEPS(munmap(block, 4096));
    KEEPS((void)!pipe(ends));
    KEEPS((void)!write(ends[1], &byte, 1));
    KEEPS((void)!read(ends[0], &byte, 1));
    SETS(sem_trywait(&semaphore), EAGAIN);
    SETS(read(-1, &byte, 1), EBADF);
    SETS(poll(nowhere, 1, 0), EFAULT);
    SETS((long)mmap(0, 0, 0, 0, -1, 0), EINVAL);
    SETS((long)malloc(huge), ENOMEM);
    fesetround(FE_UPWARD);
    feclearexcept(FE_ALL_EXCEPT);
    for (int i = 1; i < 100; i++) sum += 1.0 / i;
    printf("%.17g %d %d\n", sum, fegetround() == FE_UPWARD, fetestexcept(FE_INEXACT) != 0);
    return changed;
}
