/* close_under_reader.c, fixed: the file is closed when its reader is done. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int file;

static void *load(void *nothing) {
    char byte;
    if (read(file, &byte, 1) == 1)
        puts("loaded");
    return nothing;
}

static void *shut(void *nothing) {
    close(file);
    return nothing;
}

int main(void) {
    pthread_t loader, closer;
    file = open("/dev/zero", O_RDONLY);
    pthread_create(&loader, NULL, load, NULL);
    pthread_join(loader, NULL);
    pthread_create(&closer, NULL, shut, NULL);
    pthread_join(closer, NULL);
    return 0;
}
