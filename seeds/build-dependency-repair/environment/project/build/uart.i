static unsigned char queue[64];
static unsigned char fill;
void uart_open(unsigned int baud)
{
    *(volatile unsigned short *)0x4018 = (unsigned short)(baud / 16);
    fill = 0;
}
void uart_word(unsigned int value)
{
    for (unsigned char i = 0; i < 4 && fill < 64; i++) {
        queue[fill++] = (unsigned char)(value >> (24 - 8 * i));
    }
    while (fill > 0 && (*(volatile unsigned char *)0x4014 & 1)) {
        *(volatile unsigned char *)0x4010 = queue[--fill];
    }
}
