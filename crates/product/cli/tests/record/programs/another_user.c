/* Gives up the rights of root, if it has them, before it starts its threads. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int shared;

static void *work(void *nothing) {
    shared++;
    return nothing;
}

int main(void) {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        return 1;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%d\n", shared);
    return 0;
}
