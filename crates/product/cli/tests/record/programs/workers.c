// Forks workers, each with threads of its own; the argument is how many.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int x;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *add(void *unused) {
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&m);
        x++;
        pthread_mutex_unlock(&m);
    }
    return unused;
}

static int work(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, add, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return x == 300;
}

int main(int count, char **arguments) {
    int workers = count > 1 ? atoi(arguments[1]) : 4, right = 0;
    for (int i = 0; i < workers; i++) {
        if (fork() == 0) exit(work());
    }
    for (int i = 0; i < workers; i++) {
        int status;
        wait(&status);
        right += WEXITSTATUS(status);
    }
    printf("%d\n", right);
    return 0;
}
