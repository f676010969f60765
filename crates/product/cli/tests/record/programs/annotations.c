// A program that tells a race detector of its own synchronisation, which the compiler cannot see.
#include <pthread.h>
#include <unistd.h>

void __tsan_acquire(void *address);
void __tsan_release(void *address);
void __tsan_mutex_create(void *address, unsigned flags);
void __tsan_mutex_destroy(void *address, unsigned flags);
void __tsan_mutex_pre_lock(void *address, unsigned flags);
void __tsan_mutex_post_lock(void *address, unsigned flags, int recursion);
int __tsan_mutex_pre_unlock(void *address, unsigned flags);
void __tsan_mutex_post_unlock(void *address, unsigned flags);
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __sanitizer_set_report_fd(void *file);
void AnnotateHappensBefore(const char *file, int line, const volatile void *address);
void AnnotateHappensAfter(const char *file, int line, const volatile void *address);
void AnnotateRWLockCreate(const char *file, int line, const volatile void *lock);
void AnnotateRWLockDestroy(const char *file, int line, const volatile void *lock);
void AnnotateRWLockAcquired(const char *file, int line, const volatile void *lock, long writes);
void AnnotateRWLockReleased(const char *file, int line, const volatile void *lock, long writes);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateBenignRaceSized(const char *file, int line, const volatile void *address, long size,
                             const char *why);
int RunningOnValgrind(void);

enum { NESTS = 2, READS = 8, TRIES = 16, FAILED = 32, ALL_AT_ONCE_AGAIN = 64, ALL_AT_ONCE = 128 };

#define UNSEEN __attribute__((no_sanitize("thread"), noinline))

int released, announced, guarded, counted, racy;
static volatile int step, spin;
static char lock, nesting, readers;

UNSEEN static void reach(int number) {
    __atomic_store_n(&step, number, __ATOMIC_RELEASE);
}

UNSEEN static void await(int number) {
    while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) < number) usleep(100);
}

UNSEEN static void take_unseen(void) {
    while (__atomic_exchange_n(&spin, 1, __ATOMIC_ACQUIRE)) usleep(100);
}

UNSEEN static void give_unseen(void) {
    __atomic_store_n(&spin, 0, __ATOMIC_RELEASE);
}

static void enter(char *place, unsigned flags) {
    __tsan_mutex_pre_lock(place, flags);
    take_unseen();
    __tsan_mutex_post_lock(place, flags, 0);
}

static void leave(char *place, unsigned flags) {
    __tsan_mutex_pre_unlock(place, flags);
    give_unseen();
    __tsan_mutex_post_unlock(place, flags);
}

static void *first(void *nothing) {
    released = 1;
    __tsan_release(&released);
    announced = 1;
    AnnotateHappensBefore(__FILE__, __LINE__, &announced);
    racy = 1;
    reach(1);
    enter(&lock, 0);
    guarded++;
    leave(&lock, 0);
    take_unseen();
    AnnotateRWLockAcquired(__FILE__, __LINE__, &readers, 1);
    counted++;
    AnnotateRWLockReleased(__FILE__, __LINE__, &readers, 1);
    give_unseen();
    return nothing;
}

static void *second(void *nothing) {
    await(1);
    __tsan_acquire(&released);
    released++;
    AnnotateHappensAfter(__FILE__, __LINE__, &announced);
    announced++;
    AnnotateBenignRaceSized(__FILE__, __LINE__, &racy, sizeof racy, "declared");
    enter(&lock, 0);
    guarded++;
    leave(&lock, 0);
    take_unseen();
    AnnotateRWLockAcquired(__FILE__, __LINE__, &readers, 0);
    released += counted;
    AnnotateRWLockReleased(__FILE__, __LINE__, &readers, 0);
    give_unseen();
    return nothing;
}

static int nest(void) {
    int levels;
    __tsan_mutex_create(&nesting, NESTS);
    for (int level = 0; level < 3; level++) {
        __tsan_mutex_pre_lock(&nesting, 0);
        __tsan_mutex_post_lock(&nesting, 0, 0);
    }
    levels = __tsan_mutex_pre_unlock(&nesting, ALL_AT_ONCE);
    __tsan_mutex_post_unlock(&nesting, 0);
    __tsan_mutex_pre_lock(&nesting, TRIES);
    __tsan_mutex_post_lock(&nesting, TRIES | FAILED, 0);
    __tsan_mutex_pre_lock(&nesting, 0);
    __tsan_mutex_post_lock(&nesting, ALL_AT_ONCE_AGAIN, levels);
    levels = 10 * levels + __tsan_mutex_pre_unlock(&nesting, ALL_AT_ONCE);
    __tsan_mutex_post_unlock(&nesting, 0);
    __tsan_mutex_destroy(&nesting, 0);
    return levels;
}

static int switch_fibers(void) {
    void *own = __tsan_get_current_fiber(), *other = __tsan_create_fiber(0);
    int is_other;
    __tsan_switch_to_fiber(other, 0);
    is_other = __tsan_get_current_fiber() == other && own != other;
    __tsan_switch_to_fiber(own, 0);
    __tsan_destroy_fiber(other);
    return is_other && __tsan_get_current_fiber() == own;
}

int main(int count, char **words) {
    pthread_t threads[2];
    (void)words;
    __sanitizer_set_report_fd((void *)2);
    AnnotateRWLockCreate(__FILE__, __LINE__, &readers);
    __tsan_mutex_create(&lock, 0);
    pthread_create(&threads[0], 0, first, 0);
    pthread_create(&threads[1], 0, second, 0);
    if (count > 1) {
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
        await(1);
        counted += racy;
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    }
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    __tsan_mutex_destroy(&lock, 0);
    AnnotateRWLockDestroy(__FILE__, __LINE__, &readers);
    return !(nest() == 33 && switch_fibers() && !RunningOnValgrind());
}
