// Stands before the header of this name in GNU's C++ library, which every header of that includes.
//
// The library brings the functions of std::string compiled, so that nobody sees what they access. As for its own
// checks of strings, compilers are told to make them anew in each program: then they are instrumented as all else.
#pragma GCC system_header

#include_next <bits/c++config.h>

#if defined _GLIBCXX_EXTERN_TEMPLATE && _GLIBCXX_EXTERN_TEMPLATE > 0
#undef _GLIBCXX_EXTERN_TEMPLATE
#define _GLIBCXX_EXTERN_TEMPLATE -1
#endif
