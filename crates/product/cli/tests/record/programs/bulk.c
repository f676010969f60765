/* One thread writes more to a pipe than there is room for while another reads it: nobody keeps the other
   from running. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { BYTES = 131072, TIMES = 80 };
static int ends[2];
static char much[BYTES];

static void *writer(void *unused) {
    (void)unused;
    for (int i = 0; i < TIMES; i++) write(ends[1], much, BYTES);
    close(ends[1]);
    return 0;
}

int main(void) {
    pipe(ends);
    pthread_t thread;
    pthread_create(&thread, 0, writer, 0);
    char room[4096];
    long total = 0, count;
    while ((count = read(ends[0], room, sizeof room)) > 0) total += count;
    pthread_join(thread, 0);
    printf("%ld\n", total);
    return 0;
}
