/* Two increments that nothing orders but time, and two that nothing orders at all. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static int x, y;

static void *first(void *p) {
    usleep(20000);
    x++;
    usleep(80000);
    return p;
}

static void *second(void *p) {
    usleep(60000);
    x++;
    return p;
}

static void *often(void *p) {
    for (int i = 0; i < 20000; i++) y++;
    return p;
}

int main(int count, char **arguments) {
    pthread_t threads[2];
    int close = count > 1 && !strcmp(arguments[1], "close");
    pthread_create(&threads[0], 0, close ? often : first, 0);
    pthread_create(&threads[1], 0, close ? often : second, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
