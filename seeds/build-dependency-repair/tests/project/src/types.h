#define u8 unsigned char
#define u16 unsigned short
#define u32 unsigned int
#define TRUE 1
#define FALSE 0
