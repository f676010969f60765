// Ways to end, named by the argument. Whatever comes, the last write of `main` is `last = 4711`.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

volatile int last, x;
int *volatile nowhere;

static void *count(void *unused) {
    for (;;) {
        x++;
        last = 0;
        usleep(1000);
    }
    return unused;
}

static void *once(void *unused) {
    last = 1;
    return unused;
}

static int with_threads(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, once, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return last;
}

int main(int arguments_count, char **arguments) {
    const char *how = arguments_count > 1 ? arguments[1] : "return";
    pthread_t thread;
    int status = 0;
    pthread_create(&thread, 0, once, 0);
    pthread_join(thread, 0);
    printf("before\n");
    fflush(stdout);
    if (!strcmp(how, "fork")) {
        pid_t child = fork();
        if (child == 0) _exit(with_threads() + 4);
        waitpid(child, &status, 0);
        printf("child %d\n", WEXITSTATUS(status));
    } else if (!strcmp(how, "fork-in-thread")) {
        pthread_create(&thread, 0, count, 0);
        usleep(2000);
        pid_t child = fork();
        if (child == 0) exit(with_threads() + 4);
        waitpid(child, &status, 0);
        printf("child %d\n", WEXITSTATUS(status));
        pthread_cancel(thread);
        pthread_join(thread, 0);
    } else if (!strcmp(how, "system")) {
        printf("shell %d\n", WEXITSTATUS(system("exit 5")));
    } else if (!strcmp(how, "others-run")) {
        pthread_create(&thread, 0, count, 0);
        usleep(5000);
    }
    last = 4711;
    if (!strcmp(how, "exit")) exit(3);
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "_exit")) _exit(9);
    if (!strcmp(how, "kill")) kill(getpid(), SIGKILL);
    if (!strcmp(how, "segv")) *nowhere = 1;
    if (!strcmp(how, "term")) raise(SIGTERM);
    if (!strcmp(how, "exec")) execl("/bin/echo", "echo", "echoed", (char *)0);
    if (!strcmp(how, "pthread_exit")) pthread_exit(0);
    if (!strcmp(how, "others-run")) _exit(6);
    return 7;
}
