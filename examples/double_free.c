/* A buffer that two threads free.
 *
 * Wrong: the worker frees what it was given, and so does `main`.
 * Every run: nothing shows with this C library: each thread has a cache of free memory of its own.
 * reweave: misuse, with both places.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *print(void *text) {
    puts(text);
    free(text);
    return NULL;
}

int main(void) {
    char *text = malloc(100);
    strcpy(text, "hello");
    pthread_t printer;
    pthread_create(&printer, NULL, print, text);
    pthread_join(printer, NULL);
    free(text);
    return 0;
}
