/* Flags that functions of the C library write: each box is filled before its flag is set under the lock, and
   read after the flag was seen under the lock. Who does not know of the writes sees flags that were
   always so, and boxes that race. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { BOXES = 22, ROOM = 64 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int box[BOXES];
char flag[BOXES][ROOM] __attribute__((aligned(16)));
const char *volatile word = "1";
volatile size_t length = 1;

static void set(int which) {
    char *to = flag[which];
    time_t late = 59;
    switch (which) {
        case 0: strcpy(to, word); break;
        case 1: stpcpy(to, word); break;
        case 2: strncpy(to, word, length); break;
        case 3: strcat(to, word); break;
        case 4: strncat(to, word, length); break;
        case 5: sprintf(to, "%s%d", word, 7); break;
        case 6: snprintf(to, ROOM, "%.2f", 1.5); break;
        case 7: strtol(word, (char **)to, 10); break;
        case 8: strtoul(word, (char **)to, 10); break;
        case 9: strtod(word, (char **)to); break;
        case 10: time((time_t *)to); break;
        case 11: clock_gettime(CLOCK_REALTIME, (struct timespec *)to); break;
        case 12: gettimeofday((struct timeval *)to, 0); break;
        case 13: gmtime_r(&late, (struct tm *)to); break;
        case 14: getcwd(to, ROOM); break;
        case 15: bcopy(word, to, length); break;
        case 16: mempcpy(to, word, length); break;
        case 17: memcpy(to, word, length); break;
        case 18: memset(to, 1, length); break;
        case 19: strcpy(to, "1"); break;
        case 20: sprintf(to, "constant"); break;
        case 21: memcpy(to, "twenty-four bytes of text", 24); break;
    }
}

static int is_set(int which) {
    static const char zeros[8];
    /* The first byte of an address or of a time can be zero. */
    switch (which >= 7 && which <= 13 ? 2 : which % 4) {
        case 0: return strlen(flag[which]) > 0;
        case 1: return strcmp(flag[which], "") != 0;
        case 2: return memcmp(flag[which], zeros, sizeof zeros) != 0;
        default: return flag[which][0] != 0;
    }
}

static void *give(void *unused) {
    for (int i = 0; i < BOXES; i++) {
        box[i] = i;
        pthread_mutex_lock(&lock);
        set(i);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void *take(void *unused) {
    int sum = 0;
    for (int i = 0; i < BOXES; i++) {
        for (int seen = 0; !seen;) {
            pthread_mutex_lock(&lock);
            seen = is_set(i);
            pthread_mutex_unlock(&lock);
            if (!seen) sched_yield();
        }
        sum += box[i];
    }
    printf("%d\n", sum);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, give, 0);
    pthread_create(&threads[1], 0, take, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
