/* double_free.c, fixed: who was given the text frees it. */
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
    return 0;
}
