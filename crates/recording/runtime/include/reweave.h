/* reweave.h: what a program may tell the recorder about itself.
 *
 * The calls do nothing in a program that was built without reweave: the functions are weak, and the
 * macros of the same names call them only where they are there. `reweave cc` and `reweave c++` find
 * this header without being told; to build the same source without them, copy it.
 */
#ifndef REWEAVE_H
#define REWEAVE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Begins a block that is meant to be atomic. `name` is a string that outlives the block; the blocks
 * of a thread nest. */
extern void reweave_atomic_begin(const char *name) __attribute__((weak));

/* Ends the atomic block that this thread began last. */
extern void reweave_atomic_end(void) __attribute__((weak));

#ifdef __cplusplus
} /* extern "C" */
#endif

/* Macros and not inline functions: the recorder names the line that calls. */
#define reweave_atomic_begin(name) (reweave_atomic_begin ? reweave_atomic_begin(name) : (void)0)
#define reweave_atomic_end() (reweave_atomic_end ? reweave_atomic_end() : (void)0)

#ifdef __cplusplus
namespace reweave {

/* An atomic block that lasts as long as the guard. */
class atomic_block {
public:
    explicit atomic_block(const char *name) { reweave_atomic_begin(name); }
    ~atomic_block() { reweave_atomic_end(); }

private:
    atomic_block(const atomic_block &);
    atomic_block &operator=(const atomic_block &);
};

} /* namespace reweave */
#endif

#endif /* REWEAVE_H */
