/* A file that is closed while another thread may still read it.
 *
 * Wrong: nothing makes `shut` wait for `load`. The number of the descriptor can be given to another file at once, which
 * `load` then reads.
 * An ordinary run: the file is closed long after it was read.
 * reweave: the read can come after the close.
 */
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
    usleep(20000); /* that must be enough */
    close(file);
    return nothing;
}

int main(void) {
    pthread_t loader, closer;
    file = open("/dev/zero", O_RDONLY);
    pthread_create(&loader, NULL, load, NULL);
    pthread_create(&closer, NULL, shut, NULL);
    pthread_join(loader, NULL);
    pthread_join(closer, NULL);
    return 0;
}
