/* Memory handed from thread to thread through other processes, and descriptors that only such a process
   closes. With an argument, all of these are made by `fork`. No two accesses race. */
#define _GNU_SOURCE
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BOXES = 6 };
extern char **environ;
/* Not static: compilers move what is past calls that they know not to come back to this file. */
int box[BOXES];
static int total;
static int there[2], back[2], to_cat[2], from_cat[2], kept[2], early[2], returned[2], ended[2];
static pid_t forked, spawned, early_child, waits;
static FILE *printed;
static int all;

static void put(int which) { box[which] = which + 1; }
static void take(int which) { total += box[which]; }

static void *giver(void *unused) {
    (void)unused;
    char letter = 'a';
    put(0);
    write(there[1], &letter, 1);
    if (all) put(1), write(to_cat[1], &letter, 1);
    put(2);
    write(kept[1], &letter, 1);
    put(4);
    write(ended[1], &letter, 1);
    return 0;
}

static void *taker(void *unused) {
    (void)unused;
    char room[8];
    read(back[0], room, 1);
    take(0);
    if (all) read(from_cat[0], room, 1), take(1);
    read(kept[0], room, 1);
    take(2);
    read(returned[0], room, 1);
    take(3);
    waitpid(waits, 0, 0);
    take(4);
    if (all) fgets(room, sizeof room, printed);
    return 0;
}

/* What it puts in a pipe is there when another thread starts the process that takes it. */
static void *early_giver(void *unused) {
    (void)unused;
    put(3);
    write(early[1], "a", 1);
    return 0;
}

/* Takes a letter from one pipe and gives it to another. */
static pid_t relay(int from[2], int to[2]) {
    pid_t child = fork();
    if (child == 0) {
        char letter;
        read(from[0], &letter, 1);
        if (to) write(to[1], &letter, 1);
        _exit(0);
    }
    return child;
}

static pid_t spawn_cat(void) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to_cat[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from_cat[1], 1);
    char *words[] = {"head", "-c", "1", 0};
    pid_t child;
    posix_spawnp(&child, "head", &actions, 0, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    return child;
}

static void close_as_guest(void) {
    pid_t guest = vfork();
    if (guest == 0) {
        close(kept[0]);
        close(kept[1]);
        _exit(0);
    }
    waitpid(guest, 0, 0);
}

int main(int count, char **words) {
    (void)words;
    all = count == 1;
    pipe(there), pipe(back), pipe(to_cat), pipe(from_cat), pipe(kept), pipe(early), pipe(returned);
    pipe(ended);
    pthread_t early_thread, threads[2];
    pthread_create(&early_thread, 0, early_giver, 0);
    early_child = relay(early, returned);
    if (all) close_as_guest();
    forked = relay(there, back);
    waits = relay(ended, 0);
    if (all) spawned = spawn_cat(), printed = popen("echo b", "r");
    pthread_create(&threads[0], 0, giver, 0);
    pthread_create(&threads[1], 0, taker, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    pthread_join(early_thread, 0);
    waitpid(early_child, 0, 0);
    waitpid(forked, 0, 0);
    if (all) waitpid(spawned, 0, 0), pclose(printed);
    printf("%d %d\n", total, all ? system("exit 3") >> 8 : 0);
    return 0;
}
