/* A large block that two threads fill under a lock, and a part of it that one of them copies. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 8 << 20, PART = 1 << 20 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *block;
static char copy[PART];

static void *fill(void *unused) {
    pthread_mutex_lock(&lock);
    memset(block, 1, SIZE);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t thread;
    block = malloc(SIZE);
    pthread_create(&thread, 0, fill, 0);
    fill(0);
    pthread_mutex_lock(&lock);
    memcpy(copy, block + PART, PART);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, 0);
    return copy[0] != 1;
}
