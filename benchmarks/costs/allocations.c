/* Counts the blocks that Python's allocators are asked for. Built by counting.py, which puts these functions in front of
   an allocator by PyMem_SetAllocator; the layout is that of PyMemAllocatorEx (docs.python.org/3/c-api/memory.html). */
#include <stddef.h>

struct allocator {
    void *ctx;
    void *(*malloc)(void *ctx, size_t size);
    void *(*calloc)(void *ctx, size_t count, size_t size);
    void *(*realloc)(void *ctx, void *block, size_t size);
    void (*free)(void *ctx, void *block);
};

unsigned long long allocations = 0;

void *counted_malloc(void *ctx, size_t size) {
    struct allocator *inner = ctx;
    allocations++;
    return inner->malloc(inner->ctx, size);
}

void *counted_calloc(void *ctx, size_t count, size_t size) {
    struct allocator *inner = ctx;
    allocations++;
    return inner->calloc(inner->ctx, count, size);
}

void *counted_realloc(void *ctx, void *block, size_t size) {
    struct allocator *inner = ctx;
    allocations++;
    return inner->realloc(inner->ctx, block, size);
}

void counted_free(void *ctx, void *block) {
    struct allocator *inner = ctx;
    inner->free(inner->ctx, block);
}
