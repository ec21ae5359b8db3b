int sensor_scan(unsigned short *values)
{
    int bad = 0;
    for (unsigned char channel = 0; channel < 12; channel++) {
        *(volatile unsigned char *)0x4034 = channel;
        unsigned short value = ((volatile unsigned short *)0x4038)[channel];
        unsigned char gain = ((volatile unsigned char *)0x4050)[channel];
        value = (unsigned short)(value << gain);
        if (value > 3950 || value < 120) {
            value = 65535;
            bad = 1;
        }
        values[channel] = value;
    }
    return bad;
}
