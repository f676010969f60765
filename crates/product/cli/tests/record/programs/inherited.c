/* A thread puts a byte into a pipe and tells nobody. A process that is started later takes it out, and its
   end says so. */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int ends[2], box;

static void *give(void *nothing) {
    box = 7;
    write(ends[1], "x", 1);
    return nothing;
}

int main(void) {
    pthread_t thread;
    pipe(ends);
    pthread_create(&thread, NULL, give, NULL);
    usleep(50000);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        _exit(read(ends[0], &byte, 1) == 1 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    if (status == 0)
        printf("%d\n", box);
    pthread_join(thread, NULL);
    return 0;
}
